//! Readers' findings become one [`crate::model::Artifact`]; the one place that weighs witnesses.
