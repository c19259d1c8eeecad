//! Histories by hand, and at random: those that can have happened pass, and a single lie is found.

use super::*;

type PauseOperation = Operation<PauseCall, PauseAnswer>;

const STEPS_MAX: usize = 1_000_000;

fn winner(client: u32) -> Winner {
    Winner { client, choice: if client.is_multiple_of(2) { Choice::Approve } else { Choice::Deny } }
}

fn decided(client: u32) -> PauseStands {
    PauseStands::Decided(winner(client))
}

fn told(client: u32, call: PauseCall, (began, at): (u64, u64), answer: PauseAnswer) -> PauseOperation {
    Operation { client, call, began, end: End::Told { at, answer } }
}

fn won(client: u32, when: (u64, u64)) -> PauseOperation {
    told(client, PauseCall::Decide(winner(client)), when, PauseAnswer::Won)
}

fn lost(client: u32, when: (u64, u64), stands: PauseStands) -> PauseOperation {
    told(client, PauseCall::Decide(winner(client)), when, PauseAnswer::Lost(stands))
}

fn saw(client: u32, when: (u64, u64), stands: PauseStands) -> PauseOperation {
    told(client, PauseCall::Read, when, PauseAnswer::Saw(stands))
}

fn over(client: u32, when: (u64, u64)) -> PauseOperation {
    told(client, PauseCall::Cancel, when, PauseAnswer::Over)
}

fn unknown(client: u32, call: PauseCall, began: u64) -> PauseOperation {
    Operation { client, call, began, end: End::Unknown }
}

fn holds(history: &[PauseOperation]) -> bool {
    match check::<PauseModel>(history, STEPS_MAX) {
        Verdict::Linearizable => true,
        Verdict::Violated(_) => false,
        Verdict::Undecided(steps) => panic!("not decided within {steps} steps"),
    }
}

#[test]
fn one_wins_and_everybody_else_is_told_so() {
    assert!(holds(&[]));
    assert!(holds(&[
        saw(0, (0, 1), PauseStands::Open),
        won(1, (2, 9)),
        lost(2, (3, 8), decided(1)),
        saw(3, (4, 5), PauseStands::Open),
        saw(4, (4, 6), decided(1)),
        over(5, (10, 11)),
        saw(6, (12, 13), decided(1)),
    ]));
}

#[test]
fn two_winners_are_found() {
    let history = [won(1, (0, 5)), won(2, (3, 9))];
    assert!(!holds(&history));
    assert!(disagreement(&history).is_some());
}

#[test]
fn a_loser_who_is_told_of_somebody_who_never_decided_is_found() {
    assert!(!holds(&[lost(1, (0, 5), decided(2))]));
    assert!(!holds(&[won(1, (0, 9)), lost(2, (0, 9), decided(3))]));
    assert!(!holds(&[won(1, (0, 9)), lost(2, (0, 9), PauseStands::Open)]));
    assert!(!holds(&[lost(1, (0, 9), decided(1))]), "nobody loses to themselves");
}

#[test]
fn a_look_that_goes_back_in_time_is_found() {
    assert!(!holds(&[won(1, (0, 1)), saw(2, (2, 3), PauseStands::Open)]));
    assert!(!holds(&[saw(2, (0, 1), decided(1)), won(1, (2, 3))]));
    let history = [won(1, (0, 9)), saw(2, (1, 2), decided(1)), saw(3, (3, 4), PauseStands::Open)];
    assert!(!holds(&history));
    assert_eq!(disagreement(&history), None, "all agree on the end; only the order is wrong");
}

#[test]
fn what_nobody_knows_about_may_have_happened_late_or_never() {
    let decide = PauseCall::Decide(winner(1));
    assert!(holds(&[unknown(1, decide, 0), saw(2, (5, 6), PauseStands::Open), saw(3, (7, 8), decided(1))]));
    assert!(holds(&[unknown(1, decide, 0), won(2, (5, 6)), saw(3, (7, 8), decided(2))]));
    // Not before it began, though.
    assert!(!holds(&[saw(3, (0, 1), decided(1)), unknown(1, decide, 2)]));
}

#[test]
fn a_request_that_is_sent_again_may_have_counted_the_first_time() {
    let first = unknown(1, PauseCall::Decide(winner(1)), 0);
    assert!(holds(&[first.clone(), lost(2, (1, 2), decided(1)), won(1, (3, 4))]));
    assert!(!holds(&[first, won(2, (1, 2)), won(1, (3, 4))]));
}

#[test]
fn nothing_expires_before_its_time() {
    let expire = unknown(9, PauseCall::Expire, 50);
    assert!(holds(&[expire.clone(), saw(1, (0, 40), PauseStands::Open), saw(2, (60, 61), PauseStands::Expired)]));
    assert!(holds(&[expire.clone(), lost(1, (49, 51), PauseStands::Expired)]));
    assert!(!holds(&[expire.clone(), saw(1, (48, 49), PauseStands::Expired)]));
    assert!(!holds(&[expire, lost(1, (0, 49), PauseStands::Expired)]));
    assert!(!holds(&[saw(1, (0, 1), PauseStands::Expired)]), "what has no deadline never expires");
}

#[test]
fn after_a_cancellation_nobody_can_decide() {
    assert!(holds(&[over(1, (0, 5)), lost(2, (0, 9), PauseStands::Withdrawn)]));
    assert!(holds(&[over(1, (0, 5)), won(2, (0, 9)), saw(3, (10, 11), decided(2))]));
    assert!(!holds(&[over(1, (0, 5)), won(2, (6, 9))]));
    assert!(!holds(&[over(1, (0, 5)), saw(2, (6, 9), PauseStands::Open)]));
    assert!(!holds(&[saw(2, (6, 9), PauseStands::Withdrawn)]));
}

#[test]
fn a_search_without_end_is_given_up_and_says_so() {
    let mut history: Vec<_> = (0..9).map(|client| unknown(client, PauseCall::Decide(winner(client)), 0)).collect();
    history.push(saw(9, (5, 6), PauseStands::Expired));
    assert_eq!(check::<PauseModel>(&history, 3), Verdict::Undecided(3));
    assert!(!holds(&history));
}

#[test]
fn many_at_once_are_checked_in_no_time() {
    // What was asked while an instance stood still was all under way at once.
    let mut history: Vec<_> = (0..40).map(|client| saw(client, (0, 90), PauseStands::Open)).collect();
    history.extend((40..60).map(|client| unknown(client, PauseCall::Decide(winner(client)), 0)));
    history.extend((60..80).map(|client| lost(client, (0, 90), decided(59))));
    assert_eq!(check::<PauseModel>(&history, 200), Verdict::Linearizable);
    history.push(saw(80, (91, 92), decided(58)));
    assert!(matches!(check::<PauseModel>(&history, 200), Verdict::Violated(_)));
}

#[test]
fn what_is_violated_is_told_with_the_history() {
    let Verdict::Violated(text) = check::<PauseModel>(&[won(1, (0, 5)), won(2, (3, 9))], STEPS_MAX) else {
        panic!("two winners passed")
    };
    assert!(text.contains("client   1") && text.contains("client   2") && text.contains("Won"), "{text}");
}

/// Small numbers that look random and come again from the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// A history that did happen: one operation after the other takes effect, each somewhere between its begin and its end.
fn happened(chance: &mut Chance) -> Vec<PauseOperation> {
    let count = 2 + chance.below(14);
    let mut state = PauseStands::Open;
    let mut history = Vec::new();
    for number in 0..count {
        let now = 1_000 + number * 10;
        let client = number as u32;
        let (began, at) = (now - chance.below(60), now + chance.below(60));
        let call = match chance.below(10) {
            0..4 => PauseCall::Decide(winner(client)),
            4 => PauseCall::Cancel,
            5 => PauseCall::Expire,
            _ => PauseCall::Read,
        };
        let is_unknown = call == PauseCall::Expire || chance.below(6) == 0;
        if is_unknown && chance.below(3) == 0 {
            // It never happened.
            history.push(unknown(client, call, began));
            continue;
        }
        let before = state;
        state = PauseModel::after(&before, &call, None).unwrap();
        let answer = match call {
            PauseCall::Decide(winner) if state == PauseStands::Decided(winner) => PauseAnswer::Won,
            PauseCall::Decide(_) => PauseAnswer::Lost(state),
            PauseCall::Cancel | PauseCall::Expire => PauseAnswer::Over,
            PauseCall::Read => PauseAnswer::Saw(state),
        };
        let end = if is_unknown { End::Unknown } else { End::Told { at, answer } };
        history.push(Operation { client, call, began, end });
    }
    // The order in which clients are asked for their notes says nothing.
    for index in (1..history.len()).rev() {
        history.swap(index, chance.below(index as u64 + 1) as usize);
    }
    history
}

/// Changes one answer into a lie that no order can explain; `None` where there is none to be told.
fn with_a_lie(history: &[PauseOperation], chance: &mut Chance) -> Option<Vec<PauseOperation>> {
    let settled = |operation: &PauseOperation| match (&operation.call, operation.answer()) {
        (PauseCall::Decide(winner), Some(PauseAnswer::Won)) => Some(PauseStands::Decided(*winner)),
        (_, Some(PauseAnswer::Lost(stands) | PauseAnswer::Saw(stands))) if *stands != PauseStands::Open => {
            Some(*stands)
        }
        _ => None,
    };
    // Somebody who was told how it ended, and when at the latest.
    let (end, known_at) =
        history.iter().filter_map(|told| Some((settled(told)?, told.ended()))).min_by_key(|end| end.1)?;
    let mut lies = Vec::new();
    for (index, operation) in history.iter().enumerate() {
        let End::Told { at, answer } = &operation.end else { continue };
        let mut lie = |answer| {
            let mut history = history.to_vec();
            history[index].end = End::Told { at: *at, answer };
            lies.push(history);
        };
        let is_only_word = history.iter().filter(|other| settled(other).is_some()).count() == 1;
        match (&operation.call, answer) {
            // A loser is told to have won, while somebody else knows better.
            (PauseCall::Decide(_), PauseAnswer::Lost(_)) if !is_only_word => lie(PauseAnswer::Won),
            // A loser is told of somebody who never asked.
            (PauseCall::Decide(_), PauseAnswer::Lost(_)) => lie(PauseAnswer::Lost(decided(1_000))),
            // The end is taken back.
            (PauseCall::Read, PauseAnswer::Saw(_)) if operation.began > known_at => {
                lie(PauseAnswer::Saw(PauseStands::Open));
            }
            (PauseCall::Read, PauseAnswer::Saw(_)) => {
                let other = if end == PauseStands::Expired { decided(1_000) } else { PauseStands::Expired };
                let may_expire = history.iter().any(|other| other.call == PauseCall::Expire);
                if !may_expire || !is_only_word {
                    lie(PauseAnswer::Saw(other));
                }
            }
            _ => {}
        }
    }
    let which = chance.below(lies.len().max(1) as u64) as usize;
    lies.into_iter().nth(which)
}

#[test]
fn at_random_what_happened_passes_and_a_single_lie_is_found() {
    let first = std::env::var("HOLDPOINT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut lies = 0;
    for seed in first..first + 4_000 {
        let mut chance = Chance(seed);
        let history = happened(&mut chance);
        assert!(holds(&history), "HOLDPOINT_SEED={seed}: {history:#?}");
        assert_eq!(disagreement(&history), None, "HOLDPOINT_SEED={seed}");
        if let Some(lie) = with_a_lie(&history, &mut chance) {
            lies += 1;
            assert!(!holds(&lie), "HOLDPOINT_SEED={seed}: {lie:#?}\nmade of\n{history:#?}");
        }
    }
    assert!(lies > 1_000, "only {lies} histories had something to lie about");
}

/// Every order, one after the other: slow, and plain to see that it is right.
fn some_order_makes_sense(history: &[PauseOperation], state: PauseStands, placed: &mut Vec<usize>) -> bool {
    let rest: Vec<usize> = (0..history.len()).filter(|index| !placed.contains(index)).collect();
    if rest.iter().all(|index| history[*index].answer().is_none()) {
        return true;
    }
    rest.iter().any(|index| {
        let operation = &history[*index];
        let is_next = rest.iter().all(|other| history[*other].ended() >= operation.began);
        let after = PauseModel::after(&state, &operation.call, operation.answer()).filter(|_| is_next);
        after.is_some_and(|after| {
            placed.push(*index);
            let found = some_order_makes_sense(history, after, placed);
            placed.pop();
            found
        })
    })
}

#[test]
fn at_random_the_search_says_what_trying_every_order_says() {
    let first = std::env::var("HOLDPOINT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut counts = [0; 2];
    for seed in first..first + 4_000 {
        let mut chance = Chance(seed);
        let stands = [PauseStands::Open, decided(0), decided(1), PauseStands::Expired, PauseStands::Withdrawn];
        let history: Vec<_> = (0..2 + chance.below(4))
            .map(|number| {
                let (client, began) = (number as u32, chance.below(12));
                let when = (began, began + chance.below(8));
                let stands = stands[chance.below(5) as usize];
                match chance.below(7) {
                    0 => won(client, when),
                    1 => lost(client, when, stands),
                    2 => over(client, when),
                    3 => unknown(client, PauseCall::Expire, began),
                    4 => unknown(client, PauseCall::Decide(winner(client)), began),
                    _ => saw(client, when, stands),
                }
            })
            .collect();
        let expected = some_order_makes_sense(&history, PauseStands::Open, &mut Vec::new());
        assert_eq!(holds(&history), expected, "HOLDPOINT_SEED={seed}: {history:#?}");
        counts[usize::from(expected)] += 1;
    }
    assert!(counts.iter().all(|count| *count > 400), "both must be common: {counts:?}");
}
