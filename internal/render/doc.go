// Package render has the signs and the words for what people are shown: the states of runs, steps and gates, what was used,
// who decided. It knows nothing of how it gets to the screen but the styles of internal/console.
package render
