//! Small things that panes are made of; they know sizes and styles and nothing of the cluster.

pub(super) mod bar;
pub(super) mod boxes;
pub(super) mod row;
pub(super) mod spark;
pub(super) mod wrap;
