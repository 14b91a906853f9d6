// Package text prepares text that sluice did not write for the places where it is shown: cleaned for a line (Clean, Line,
// Message) or a block (Reveal), cut at a number of bytes (Clip), and compared with the names that may have been meant
// (Nearest, Meant). It has the small words that all screens share, as Plural. It is pure.
package text
