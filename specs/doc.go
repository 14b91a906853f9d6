// Package specs reads workflows: it turns the text of `.workflow/specs/<id>.yaml` into an engine.Spec, or tells all
// that is wrong with it at once, each fault at its file, line and column.
//
// The language is the Go types of language.go: the reader goes by them, the JSON Schema that editors use
// (workflow.schema.json) is generated from them, and a test keeps the two equal. Reading goes in four passes:
//
//	bytes -> YAML nodes      bounded: size, nodes, aliases, one document, UTF-8
//	nodes -> language types  keys, kinds, required keys; the nearest known name where a typo is likely
//	types -> engine.Spec     references, rules of the language, expressions compiled against a declared environment
//	Spec.Link                cycles, and steps that nothing reaches
//
// Nothing here touches a process, the network or a clock but to bound an evaluation; only LoadFile, Find and Pin read files.
//
// Expressions are total: they run within a budget of steps, memory and time, and what goes wrong in one is its error.
package specs
