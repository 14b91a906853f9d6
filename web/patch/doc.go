// Package patch renders a unified diff as HTML for a page that people decide on. It reads the diff
// as a stream and never holds more of it than the files it shows.
//
// Page writes the first files and lists the others, File writes one, List goes on with the list,
// Rest writes what was clipped of a long line, and Find tells which line an id names. All of them
// count what they leave out. A reader of the diff must be at its beginning, and files are counted
// from 1 in its order: an id means the same line as long as the diff is of the same two commits.
//
// What git wrote is read by internal/review, what foreign text becomes is decided in web/visible.
//
// Reading order: scan.go (files, hunks and lines of a stream), change.go (what is shown of a file),
// body.go and words.go (rows), page.go (Page, File, List), line.go (ids, Rest, Find).
package patch
