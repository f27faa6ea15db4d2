//! Pictures for the manual: frames of a console that does the whole job by its keys, at moments worth showing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use color_eyre::eyre::{Result, WrapErr, bail, ensure};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tokio::time::{Instant, timeout_at};

use crate::config::theme::Theme;
use crate::domain::load::Stage;
use crate::drive::Console;
use crate::input::{self, Chord, Key};
use crate::model::State;
use crate::model::state::ServingState;
use crate::view::{self, Glyphs, Look, Regions};

use super::frame::{self, Beside};

/// Size of the pictures, in cells: a common size of a terminal that has room.
const SIZE: Rect = Rect::new(0, 0, 120, 40);

/// Longest wait for a moment.
const LIMIT: Duration = Duration::from_secs(180);

/// Requests of a test that are over when its picture is taken.
const REQUESTS: usize = 3;

/// Brings the cluster up, tests it, and writes a picture of each moment into a directory. The files written come back.
///
/// # Errors
/// When a moment does not come, or a file can't be written.
pub async fn write_pictures(console: Console, theme: Theme, directory: &Path) -> Result<Vec<PathBuf>> {
    let look = Look::new(theme, Glyphs::Unicode, true, 0);
    let mut artist = Artist {
        console,
        look,
        directory,
    };
    let written = artist.job().await;
    artist.console.shutdown().await;
    written
}

struct Artist<'a> {
    console: Console,
    look: Look,
    directory: &'a Path,
}

impl Artist<'_> {
    async fn job(&mut self) -> Result<Vec<PathBuf>> {
        self.until("every node answers", State::plannable).await?;
        self.press(Key::Char('U'));
        let refusals = self.console.state().plan.as_ref().map_or(1, |p| p.refusals.len());
        ensure!(refusals == 0, "there is no plan that can run");
        let plan = self.picture("plan")?;
        self.press(Key::Enter);
        self.until("half of the weights are loaded", half_loaded).await?;
        let loading = self.picture("loading")?;
        self.until("the model is ready", |s| s.server.state == ServingState::Ready)
            .await?;
        self.press(Key::Esc);
        self.press(Key::Char('T'));
        self.press(Key::Enter);
        self.until("some requests are over", tested).await?;
        let test = self.picture("test")?;
        Ok(vec![plan, loading, test])
    }

    /// Presses a key, as an operator does.
    fn press(&mut self, key: Key) {
        let state = self.console.state();
        let question = state.questions.front().map(|q| q.id);
        let chord = Chord {
            key,
            ctrl: false,
            alt: false,
        };
        if let Some(intent) = input::intent(state.screen.mode, chord, question) {
            self.console.intent(intent);
        }
    }

    async fn until(&mut self, what: &str, so: impl Fn(&State) -> bool) -> Result<()> {
        let end = Instant::now() + LIMIT;
        while !so(self.console.state()) {
            if timeout_at(end, self.console.step()).await.is_err() {
                bail!("not within {LIMIT:?}: {what}");
            }
        }
        Ok(())
    }

    fn picture(&self, name: &str) -> Result<PathBuf> {
        let mut buffer = Buffer::empty(SIZE);
        let mut regions = Regions::default();
        frame::compose(&self.console, &self.look, Beside::default(), &mut buffer, &mut regions);
        let path = self.directory.join(format!("{name}.svg"));
        std::fs::write(&path, view::svg(&buffer))
            .wrap_err_with(|| format!("{} could not be written", path.display()))?;
        Ok(path)
    }
}

fn half_loaded(state: &State) -> bool {
    state.nodes.iter().any(|n| {
        let weights = n.load.stage.is_some_and(|(stage, _)| stage == Stage::Weights);
        weights && n.load.bar.is_some_and(|b| b.done * 2 >= b.total)
    })
}

fn tested(state: &State) -> bool {
    let flows = state.server.generation.value().is_some_and(|rate| *rate > 0.0);
    flows && state.bench.as_ref().is_some_and(|b| b.records.len() >= REQUESTS)
}
