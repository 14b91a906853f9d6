// Package importer turns workflows of other tools into specs of ours: of Archon, takt, conductor,
// gh-aw and symphony. Plan reads a file, and what it names, and returns the files to write with a
// report: each construct of the original is taken over, approximated or left. What is not taken over
// is also a comment at its place in the spec. Write lays the files down.
//
// A reader per format (archon.go, takt.go, conductor.go, ghaw.go, symphony.go) makes flows (flow.go)
// of the original; one writer (emit.go) makes YAML of a flow. A format's table (table_*.go) says what
// becomes of each of its keys; a reader corrects that for a value it cannot translate. So no key
// goes unnoticed: one that no table has is left, and reported.
//
// The original is not trusted. Reading is bounded, stays within the original's own tree and follows
// no link out of it. Nothing the original permits is imported as a permission: it is a comment for a
// person. A script that would run outside text as code is not run: a person is asked in its place.
//
// Nothing here runs a process or uses the network.
package importer
