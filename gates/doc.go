// Package gates judges. It reads the verdicts and answers of agents, checks the criteria that a
// machine can check, and knows which files are the law ([Law]): if a step changes one, a person
// must look. Package internal/prompt, which gates does not import, has the prompts.
//
// A verdict is read from the reviewer's own words only ([ReadVerdict]), in a fixed order. The first
// place with content decides; it is read strictly, or the error is fed back ([Correction]). Nothing
// is guessed, and there is no fallback to a kinder reading: an unreadable verdict never passes.
//
// Everything is bounded by constants. No function starts a process or writes a file.
package gates
