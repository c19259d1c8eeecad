-- Pages of the inbox for one agent or one tool, without passing over all the others. Only what is open is in them, so that
-- a decision costs nothing here.
CREATE INDEX pause_open_of_agent ON pause (agent, opened_at, run, number) WHERE status = 0;
CREATE INDEX pause_open_of_tool ON pause (tool, opened_at, run, number) WHERE status = 0;
