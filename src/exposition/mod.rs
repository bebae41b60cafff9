//! (room of the house; see docs/ARCHITECTURE.md)
