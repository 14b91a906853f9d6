// Package gates judges: it reads the verdicts and answers that agents give, checks the criteria that a machine can
// check, and knows which files are the law ([Law]): a step that changed one of them has a person look. What agents are
// asked is in package internal/prompt, which gates does not know.
//
// A verdict is read from the reviewer's own words only ([ReadVerdict]), in one fixed order. The first place that says
// anything decides, and what it says is strict or it is an error that is fed back ([Correction]). Nothing is guessed,
// and nothing falls through to a kinder reading: a verdict that cannot be read never passes.
//
// Everything is bounded; the limits are constants. No function starts a process or writes a file.
package gates
