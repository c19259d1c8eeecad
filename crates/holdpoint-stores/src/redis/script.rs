//! Scripts by their names. A server that does not know one, or forgot it, is handed it, and asked again.

use ::redis::aio::ConnectionManager;
use ::redis::{Cmd, FromRedisValue, Pipeline, RedisResult, Script};

/// A call of a script, with room for its arguments.
pub(super) struct Call {
    script: &'static Script,
    pub(super) cmd: Cmd,
}

impl Call {
    /// One that may change something. So many keys come first.
    pub(super) fn changing(script: &'static Script, keys: usize, arguments: usize, bytes: usize) -> Self {
        Self::new("EVALSHA", script, keys, Cmd::with_capacity(arguments + 3, bytes + 64))
    }

    /// One that only reads. So many keys come first.
    pub(super) fn reading(script: &'static Script, keys: usize) -> Self {
        Self::new("EVALSHA_RO", script, keys, Cmd::new())
    }

    fn new(command: &str, script: &'static Script, keys: usize, mut cmd: Cmd) -> Self {
        cmd.arg(command).arg(script.get_hash()).arg(keys);
        Self { script, cmd }
    }

    /// What the script answers. It is on its way when the future was polled once.
    pub(super) async fn send<T: FromRedisValue>(&self, connection: &mut ConnectionManager) -> RedisResult<T> {
        match self.cmd.query_async(connection).await {
            Err(error) if error.code() == Some("NOSCRIPT") => {
                self.script.load_async(connection).await?;
                self.cmd.query_async(connection).await
            }
            answer => answer,
        }
    }

    /// What the script and the commands after it answer, all of them sent together.
    pub(super) async fn send_before<T: FromRedisValue>(
        &self,
        commands: impl Iterator<Item = Cmd>,
        connection: &mut ConnectionManager,
    ) -> RedisResult<T> {
        let mut pipe = Pipeline::new();
        pipe.add_command(self.cmd.clone());
        commands.for_each(|command| {
            pipe.add_command(command);
        });
        match pipe.query_async(connection).await {
            Err(error) if error.code() == Some("NOSCRIPT") => {
                self.script.load_async(connection).await?;
                pipe.query_async(connection).await
            }
            answer => answer,
        }
    }
}
