//! Load configuration: where and how an artefact is going to be loaded.
