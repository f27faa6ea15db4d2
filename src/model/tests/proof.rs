//! What proves a server: tokens, and what does not.

use super::*;
use crate::domain::serving::NoToken;

#[test]
fn a_wish_to_connect_anew_is_carried_out_whatever_is_in_front() {
    let mut told = Told::new(Options::default());
    assert_eq!(told.wants(Intent::Reconnect), [Effect::Reconnect]);
    told.wants(Intent::Help);
    assert_eq!(told.wants(Intent::Reconnect), [Effect::Reconnect]);
}

#[test]
fn healthy_is_answering_until_a_token_came_back() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 0.0);
    assert_eq!(*told.state(), ServingState::Answering);
    told.server(200, token());
    assert_eq!(*told.state(), ServingState::Ready);
}

#[test]
fn tokens_that_the_server_has_counted_are_proof_and_cost_none() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 3.0);
    assert_eq!(*told.state(), ServingState::Ready);
    assert_eq!(asks(&told.tick(200), ServerProbe::Token), 0);
}

#[test]
fn one_token_is_asked_for_once_a_start_of_the_server() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 0.0);
    assert_eq!(asks(&told.tick(200), ServerProbe::Token), 1);
    assert_eq!(asks(&told.tick(5000), ServerProbe::Token), 0);
    told.server(6000, ServerFacts::Health(Health::Refused));
    told.healthy(7000, 0.0);
    assert_eq!(asks(&told.tick(7001), ServerProbe::Token), 1);
}

#[test]
fn no_probe_asks_for_no_token_and_says_answering() {
    let mut told = Told::serving(Options { no_probe: true });
    told.healthy(100, 0.0);
    assert_eq!(asks(&told.tick(200), ServerProbe::Token), 0);
    assert_eq!(*told.state(), ServingState::Answering);
}

#[test]
fn an_engine_that_says_healthy_and_dies_at_the_first_token_is_not_ready() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 0.0);
    told.server(200, ServerFacts::Token(Err(NoToken::Failed("the engine died".into()))));
    assert!(
        matches!(told.state(), ServingState::Failed(why) if why.contains("the engine died")),
        "{:?}",
        told.state()
    );
    told.healthy(300, 0.0);
    assert!(
        matches!(told.state(), ServingState::Failed(_)),
        "health does not outweigh it"
    );
}

#[test]
fn a_token_that_failed_is_asked_for_again_after_a_while_and_tokens_counted_meanwhile_are_proof() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 0.0);
    assert_eq!(asks(&told.tick(200), ServerProbe::Token), 1);
    assert_eq!(told.0.observed.server.token.reason(), Some(TOKEN_ASKED));
    told.server(300, ServerFacts::Token(Err(NoToken::Failed("the tunnel broke".into()))));
    told.healthy(50_000, 0.0);
    assert_eq!(asks(&told.tick(50_001), ServerProbe::Token), 0);
    told.healthy(60_300, 0.0);
    assert_eq!(asks(&told.tick(60_301), ServerProbe::Token), 1);
    assert_eq!(asks(&told.tick(70_000), ServerProbe::Token), 0);
    told.server(
        70_001,
        ServerFacts::Token(Err(NoToken::Failed("the tunnel broke".into()))),
    );
    told.healthy(71_000, 5.0);
    assert_eq!(*told.state(), ServingState::Ready, "somebody else's tokens are as good");
}

#[test]
fn a_token_that_was_asked_for_when_the_head_was_lost_is_asked_for_again() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 0.0);
    assert_eq!(asks(&told.tick(200), ServerProbe::Token), 1);
    told.server(300, ServerFacts::Token(Err(NoToken::Failed("the tunnel broke".into()))));
    told.at(400, Source::Node(HEAD), EventKind::Link(down()));
    told.at(500, Source::Node(HEAD), EventKind::Link(LinkState::Up));
    told.healthy(600, 0.0);
    assert_eq!(*told.state(), ServingState::Answering);
    assert_eq!(asks(&told.tick(700), ServerProbe::Token), 1);
}

#[test]
fn a_server_that_was_started_anew_between_two_good_scrapes_must_prove_itself_again() {
    let mut told = Told::serving(Options::default());
    let sample = |started| {
        let scrape = MetricsSample {
            started: Some(started),
            ..counted(0.0)
        };
        ServerFacts::Metrics(Ok(scrape.into()))
    };
    told.healthy(100, 0.0);
    told.server(200, sample(1000.0));
    told.server(300, token());
    assert_eq!(*told.state(), ServingState::Ready);
    told.server(400, ServerFacts::Metrics(Err("no answer in time".into())));
    assert_eq!(*told.state(), ServingState::Ready);
    told.server(500, sample(2000.0));
    assert_eq!(*told.state(), ServingState::Answering);
    assert_eq!(asks(&told.tick(600), ServerProbe::Token), 1);
}

#[test]
fn a_server_of_another_model_is_not_ready_and_is_asked_for_no_token() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 3.0);
    told.server(200, ServerFacts::Models(Ok(vec!["qwen35".into()])));
    let wanted = told.0.config.serve.name().to_owned();
    assert_eq!(
        *told.state(),
        ServingState::Degraded(format!("/v1/models names qwen35, not {wanted}"))
    );
    told.server(300, ServerFacts::Metrics(Ok(counted(0.0).into())));
    assert_eq!(asks(&told.tick(400), ServerProbe::Token), 0);
}

#[test]
fn a_proof_dies_with_the_server_that_gave_it() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 0.0);
    told.server(200, token());
    told.server(300, ServerFacts::Health(Health::Refused));
    assert_eq!(*told.state(), ServingState::Stopping, "its process still runs");
    told.healthy(400, 0.0);
    assert_eq!(*told.state(), ServingState::Answering);
}

#[test]
fn a_server_that_lets_nobody_in_without_a_key_answers_and_has_not_failed() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 0.0);
    let why = "401: the server wants an API key; name where it is in [secrets]";
    told.server(200, ServerFacts::Metrics(Err(why.into())));
    told.server(200, ServerFacts::Token(Err(NoToken::NotLetIn(why.into()))));
    assert_eq!(*told.state(), ServingState::Answering);
    assert_eq!(told.0.server_why().as_deref(), Some(why));
    // Tokens that it has counted prove it all the same.
    told.healthy(300, 7.0);
    assert_eq!(*told.state(), ServingState::Ready);
}
