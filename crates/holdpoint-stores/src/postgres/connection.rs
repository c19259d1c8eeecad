//! A connection out of the pool. It goes back only when nothing is open on it; whoever drops it in the middle of
//! something closes it, and the server takes back what was not committed.

use deadpool_postgres::{Client, ClientWrapper, Object};
use futures_util::future::{BoxFuture, try_join_all};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

use super::fault::WriteError;

pub(super) struct Connection(Option<Client>);

/// A parameter of a statement.
pub(super) type Param<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// A parameter with a value for each of many rows.
pub(super) fn column<'a, R, T>(rows: impl IntoIterator<Item = R>, of: impl Fn(R) -> T) -> Param<'a>
where
    T: ToSql + Send + Sync + 'a,
{
    Box::new(rows.into_iter().map(of).collect::<Vec<T>>())
}

impl Connection {
    pub(super) fn new(client: Client) -> Self {
        Self(Some(client))
    }

    fn client(&self) -> &ClientWrapper {
        self.0.as_ref().expect("a connection is there until it is given back")
    }

    /// Gives it back, now that nothing is open on it.
    pub(super) fn give_back(mut self) {
        drop(self.0.take());
    }

    /// The rows of a single statement.
    pub(super) async fn query(&self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        let statement = self.client().prepare_cached(sql).await?;
        self.client().query(&statement, params).await
    }

    /// The row of a single statement, if there is one.
    pub(super) async fn query_opt(
        &self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Error> {
        self.query(sql, params).await.map(|rows| rows.into_iter().next())
    }

    /// Text with several statements and no parameters.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), Error> {
        self.client().batch_execute(sql).await
    }

    /// Ends the transaction without a trace, and gives the connection back.
    pub(super) async fn roll_back(self) {
        if self.batch("ROLLBACK").await.is_ok() {
            self.give_back();
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            // Out of the pool for good.
            drop(Object::take(client));
        }
    }
}

/// Statements that are sent one after the other without waiting for answers, and are executed in that order.
#[derive(Default)]
pub(super) struct Pipeline<'a> {
    steps: Vec<Step<'a>>,
}

enum Step<'a> {
    /// Text without parameters.
    Text(&'static str),
    Statement(&'static str, Vec<Param<'a>>),
}

impl<'a> Pipeline<'a> {
    pub(super) fn text(&mut self, sql: &'static str) {
        self.steps.push(Step::Text(sql));
    }

    pub(super) fn add<const N: usize>(&mut self, sql: &'static str, params: [Param<'a>; N]) {
        self.steps.push(Step::Statement(sql, params.into()));
    }

    /// The rows of each statement, in order. The first error is that which counts: in a transaction those behind it
    /// only follow from it.
    pub(super) async fn run(&self, connection: &Connection) -> Result<Vec<Vec<Row>>, Error> {
        self.send(connection).await?.collect().await
    }

    /// Runs it with a commit at the end.
    pub(super) async fn commit(mut self, connection: &Connection) -> Result<(), WriteError> {
        self.text("COMMIT");
        let answers = self.send(connection).await?;
        // From here on the commit may be with the server.
        match answers.collect().await {
            Ok(_) => Ok(()),
            Err(error) if error.as_db_error().is_some_and(is_plain_error) => Err(WriteError::NotWritten(error.into())),
            Err(error) => Err(WriteError::InDoubt(error.into())),
        }
    }

    /// Sends everything. An error here means that nothing was sent.
    async fn send<'s>(&'s self, connection: &'s Connection) -> Result<Answers<'s>, Error> {
        let client = connection.client();
        // Prepared before any of them is sent, so that none overtakes another. Mostly they are there already.
        let statements = try_join_all(self.steps.iter().map(async |step| match step {
            Step::Text(_) => Ok::<_, Error>(None),
            Step::Statement(sql, _) => client.prepare_cached(sql).await.map(Some),
        }))
        .await?;
        let mut answers = Vec::with_capacity(self.steps.len());
        for (step, statement) in self.steps.iter().zip(statements) {
            let mut answer = execute(client, step, statement);
            // A statement is sent when its future is polled for the first time.
            answers.push(match futures_util::poll!(&mut answer) {
                std::task::Poll::Ready(done) => Box::pin(std::future::ready(done)),
                std::task::Poll::Pending => answer,
            });
        }
        Ok(Answers(answers))
    }
}

fn execute<'s>(
    client: &'s ClientWrapper,
    step: &'s Step<'_>,
    statement: Option<Statement>,
) -> BoxFuture<'s, Result<Vec<Row>, Error>> {
    Box::pin(async move {
        match (step, statement) {
            (Step::Statement(_, params), Some(statement)) => {
                let params: Vec<&(dyn ToSql + Sync)> =
                    params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect();
                client.query(&statement, &params).await
            }
            (Step::Text(sql) | Step::Statement(sql, _), _) => client.batch_execute(sql).await.map(|()| Vec::new()),
        }
    })
}

/// What was sent and is being answered, in order.
struct Answers<'s>(Vec<BoxFuture<'s, Result<Vec<Row>, Error>>>);

impl Answers<'_> {
    async fn collect(self) -> Result<Vec<Vec<Row>>, Error> {
        let mut rows = Vec::with_capacity(self.0.len());
        for answer in self.0 {
            rows.push(answer.await?);
        }
        Ok(rows)
    }
}

/// An error after which the server goes on: it has rolled the transaction back, and `COMMIT` with it.
fn is_plain_error(error: &tokio_postgres::error::DbError) -> bool {
    use tokio_postgres::error::Severity;
    error.parsed_severity() == Some(Severity::Error)
}
