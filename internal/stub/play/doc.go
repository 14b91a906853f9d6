// Package play does what a stand-in's part says: it waits, writes files, commits, answers and ends,
// as an agent's process would. It stands above internal/stub, which only describes parts and which
// specs imports.
package play
