//! Comparison of an artefact with itself and with a load configuration. Pure functions, one file per subject.
