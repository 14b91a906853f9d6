// Package text prepares text that sluice did not write for the places where it is shown: cleaned for a line (Clean) or a block
// (Reveal), cut at a number of bytes (Clip), and compared with the names that may have been meant (Nearest). It is pure.
package text
