// Package review has the line comments of a person: the sheet on which they are written, which is a
// patch with comments under its lines (sheet.go, read.go), where each line of a patch is in its file
// (patch.go), which words of two lines differ (words.go), and what became of the place of a finding
// (since.go). It reads and writes no file.
package review
