//! Scripted fakes for every port. A dev-dependency only.
