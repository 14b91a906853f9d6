// Package render puts what people are shown into signs, words and lines: facts of the journal, runs with their steps and
// gates, the tasks of a list, what was used, who decided. Commands print the lines, screens lay them out. Only cmd/sluice
// and the screens import it.
//
// Whatever an agent or another person wrote is cleaned here: a line that render returns is safe to print.
//
// Reading order: words.go (states, spans, actors), facts.go, facts_gate.go and tasks.go (a fact in words), run.go and step.go
// (a run, line by line), text.go (texts of the spec with a run's values).
package render
