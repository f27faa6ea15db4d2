//! Whether a question has been on the screen for long enough to be answered.

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::QuestionId;

/// How long a question stands on the screen before keys are taken for its answer: those pressed until then were meant for what it came over.
const READ: Duration = Duration::from_millis(300);

/// The question that the last drawn frame showed.
#[derive(Default)]
pub(super) struct Asked {
    /// Which, and when it was first drawn.
    drawn: Option<(QuestionId, Instant)>,
    /// Whether that frame said that it can't be answered yet.
    said_early: bool,
}

impl Asked {
    /// Whether keys do not count yet for the question in front, if there is one.
    pub(super) fn early(&self, front: Option<QuestionId>, now: Instant) -> bool {
        let read = |id| self.drawn.is_some_and(|(drawn, at)| drawn == id && now >= at + READ);
        front.is_some_and(|id| !read(id))
    }

    /// A frame was drawn, with this question in front.
    pub(super) fn drew(&mut self, front: Option<QuestionId>, said_early: bool, now: Instant) {
        if self.drawn.map(|(id, _)| id) != front {
            self.drawn = front.map(|id| (id, now));
        }
        self.said_early = said_early;
    }

    /// When the frame on the screen is to be drawn anew, because keys count from then on.
    pub(super) fn anew_at(&self) -> Option<Instant> {
        let (_, at) = self.drawn?;
        self.said_early.then_some(at + READ)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Option<QuestionId> = Some(QuestionId(1));
    const SECOND: Option<QuestionId> = Some(QuestionId(2));

    #[test]
    fn only_a_question_that_was_drawn_and_stood_a_while_takes_keys() {
        let start = Instant::now();
        let mut asked = Asked::default();
        assert!(!asked.early(None, start));
        // It is in front and no frame has shown it, however long ago it came.
        assert!(asked.early(FIRST, start + READ * 10));
        asked.drew(FIRST, true, start);
        assert_eq!(asked.anew_at(), Some(start + READ));
        assert!(asked.early(FIRST, start + READ / 2));
        // A frame in between starts nothing anew.
        asked.drew(FIRST, true, start + READ / 2);
        assert!(!asked.early(FIRST, start + READ));
        asked.drew(FIRST, false, start + READ);
        assert_eq!(asked.anew_at(), None);
    }

    #[test]
    fn each_question_has_its_own_time() {
        let start = Instant::now();
        let mut asked = Asked::default();
        asked.drew(FIRST, true, start);
        assert!(asked.early(SECOND, start + READ * 2));
        asked.drew(SECOND, true, start + READ * 2);
        assert!(asked.early(SECOND, start + READ * 2));
        assert!(!asked.early(SECOND, start + READ * 3));
        asked.drew(None, false, start + READ * 3);
        assert_eq!(asked.anew_at(), None);
    }
}
