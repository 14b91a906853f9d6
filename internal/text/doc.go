// Package text prepares text that sluice did not write for the places where it is shown. It imports nothing of
// ours and keeps no state.
//
// Clean, Line and Message clean text for one line; Reveal cleans a block and marks what was hidden. Data fences
// a block, so that nothing in it can end it (Fence has the rule); Head and Tail keep the beginning or the end of
// what is too long; Clip cuts at a number of bytes. Nearest and Meant return the name that was likely meant.
// Words that all screens share, such as Plural, are here too.
package text
