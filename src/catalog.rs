//! Every metric family, defined once.
