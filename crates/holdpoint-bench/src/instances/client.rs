//! What clients do: they start runs, and decide, cancel and read pauses, through whichever instance.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use holdpoint_testkit::linear::{Choice, PauseAnswer, PauseCall, Winner};
use tokio_util::sync::CancellationToken;

use super::agents::{Agent, HASTY, PATIENT, PAYER, REPEATER};
use super::api::{Client, Decided, Reply, Started};
use super::cluster::{Cluster, INSTANCES};
use super::table::{Live, Table};
use crate::chance::Chance;

/// Asks about live pauses until it is stopped.
pub(super) async fn play(number: u32, seed: u64, cluster: Arc<Cluster>, table: Arc<Table>, stop: CancellationToken) {
    let mut player = Player { chance: Chance::new(seed, number as usize), client: Client::new(number), cluster, table };
    while !stop.is_cancelled() {
        match player.table.pick(&mut player.chance) {
            Some((slot, live)) => {
                player.visit(&live).await;
                player.table.renew(slot, &live);
            }
            // Its successor is on its way.
            None => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    }
}

struct Player {
    chance: Chance,
    client: Client,
    cluster: Arc<Cluster>,
    table: Arc<Table>,
}

impl Player {
    async fn visit(&mut self, live: &Live) {
        let is_shot = self.wait_for_the_deadline(live).await;
        let decides = live.is_overdue() || is_shot || self.chance.percent(42);
        match decides {
            // Those who start runs may lag behind: pauses that are left open stay enough.
            _ if self.table.is_short() && live.seems_open() && !is_shot => self.read(live).await,
            true if live.may_decide(self.client.number) => self.decide(live).await,
            false if self.chance.percent(8) => self.cancel(live).await,
            _ => self.read(live).await,
        }
    }

    /// Now and then, waits to decide at the very moment at which the time is up, or shortly before or after.
    async fn wait_for_the_deadline(&mut self, live: &Live) -> bool {
        let (Some(deadline), now) = (live.deadline, self.table.now()) else { return false };
        let left = deadline.saturating_sub(now);
        if left == 0 || left > 1_000_000 || !self.chance.percent(30) {
            return false;
        }
        let early = self.chance.below(40_000);
        tokio::time::sleep(Duration::from_micros((left + 20_000).saturating_sub(early))).await;
        true
    }

    async fn decide(&mut self, live: &Live) {
        let choice = if self.chance.percent(60) { Choice::Approve } else { Choice::Deny };
        let call = PauseCall::Decide(Winner { client: self.client.number, choice });
        // Where nobody knows what came of it, the same is often sent again.
        for _ in 0..3 {
            let (instance, patience, began) = (self.instance(), self.patience(), self.table.now());
            let reply = self.client.decide(&self.cluster, instance, &live.pause, choice, patience).await;
            let (reply, shown) = match reply {
                Reply::Told(Decided { answer, shown }) => (Reply::Told(answer), shown),
                Reply::NotDone => (Reply::NotDone, None),
                Reply::Unknown => (Reply::Unknown, None),
                Reply::Wrong(why) => (Reply::Wrong(why), None),
            };
            let is_known = self.note(live, call, began, reply).await;
            if let Some(shown) = shown {
                self.note(live, PauseCall::Read, began, Reply::Told(PauseAnswer::Saw(shown))).await;
            }
            if is_known || self.chance.percent(40) {
                return;
            }
        }
    }

    async fn cancel(&mut self, live: &Live) {
        let (instance, patience, began) = (self.instance(), self.patience(), self.table.now());
        let reply = self.client.cancel(&self.cluster, instance, &live.run, patience).await;
        self.note(live, PauseCall::Cancel, began, reply).await;
    }

    async fn read(&mut self, live: &Live) {
        let (instance, patience, began) = (self.instance(), self.patience(), self.table.now());
        let reply = self.client.read(&self.cluster, instance, &live.pause, patience).await;
        self.note(live, PauseCall::Read, began, reply).await;
    }

    /// Notes what came of an operation; says whether that is known.
    async fn note(&mut self, live: &Live, call: PauseCall, began: u64, reply: Reply<PauseAnswer>) -> bool {
        if matches!(reply, Reply::NotDone) {
            // Nobody is there. Who asks without a rest only heats the machine.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.table.note(self.client.number, live, call, began, reply)
    }

    /// Most often its own one: one that stands still must not hold up everybody.
    fn instance(&mut self) -> usize {
        match self.chance.percent(60) {
            true => self.client.number as usize % INSTANCES,
            false => self.chance.below(INSTANCES as u64) as usize,
        }
    }

    /// Most wait for a good while; some give up early.
    fn patience(&mut self) -> Duration {
        let millis = if self.chance.percent(5) { 50 + self.chance.below(950) } else { 4_000 };
        Duration::from_millis(millis)
    }
}

/// Starts runs for slots without a pause until it is stopped. Names of runs are counted in `started`.
pub(super) async fn renew(
    number: u32,
    seed: u64,
    (cluster, table): (Arc<Cluster>, Arc<Table>),
    started: Arc<AtomicU64>,
    stop: CancellationToken,
) {
    let mut chance = Chance::new(!seed, number as usize);
    let mut client = Client::new(number);
    while !stop.is_cancelled() {
        let Some(slot) = table.next_empty() else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let agent = agent(&mut chance);
        let name = format!("run {}", started.fetch_add(1, Ordering::Relaxed));
        // Under one name it starts once, however often it is asked for and wherever.
        let mut tries = 0;
        loop {
            let instance = chance.below(INSTANCES as u64) as usize;
            match client.start(&cluster, instance, agent, &name).await {
                Reply::Told(Started::Waiting(run)) => break table.fill(slot, agent, run, &mut chance),
                // It had to be asked for again, and its time was up before anybody saw it.
                Reply::Told(Started::Over(_)) => break table.give_back(slot),
                Reply::Wrong(why) => table.found_wrong(why),
                Reply::NotDone | Reply::Unknown => {}
            }
            tries += 1;
            if stop.is_cancelled() || tries > 30 {
                break table.give_back(slot);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn agent(chance: &mut Chance) -> Agent {
    match chance.below(8) {
        0..4 => PAYER,
        4 | 5 => REPEATER,
        6 => HASTY,
        _ => PATIENT,
    }
}
