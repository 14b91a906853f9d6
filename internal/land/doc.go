// Package land brings the work of a run onto a person's branch and prints how that went. Run lands
// it, ToTake says in a line what is left to land. How commits are made and moved is
// internal/tree's; what a run has made, internal/folders'.
package land
