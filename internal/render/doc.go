// Package render turns what people are shown into signs, words and lines: facts of the journal,
// runs with their steps and gates, a list's tasks, usage, actors. Commands print the lines, screens
// arrange them. Only what shows something imports it.
//
// Words of agents and other people are cleaned here: a line from render is safe to print.
//
// Reading order: words.go (states, spans, actors), facts.go, facts_gate.go and tasks.go (a fact in
// words), log.go (facts line by line), run.go and step.go (a run, line by line), text.go (texts of the
// spec with a run's values).
package render
