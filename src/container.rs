//! Package layout: what a file or folder is, and its members with their roles.
