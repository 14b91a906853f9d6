// Package specs reads workflows. It turns the text of `.workflow/specs/<id>.yaml` into an
// engine.Spec, or reports all its faults at once, each with file, line and column.
//
// The Go types of language.go define the language: the reader uses them, the JSON Schema for
// editors (workflow.schema.json) is generated from them, and a test keeps the two equal. Reading
// takes four passes:
//
//	bytes -> YAML nodes      limits: size, nodes, aliases, one document, UTF-8
//	nodes -> language types  keys, kinds, required keys; suggestions for likely typos
//	types -> engine.Spec     references, language rules, expressions compiled against a declared environment
//	Spec.Link                cycles, and steps that nothing reaches
//
// Reading order: language.go (the keys), read.go, compile.go, the files of a step, a gate and their parts
// (compile_*.go), schema.go (prints the keys' docs into the schema; docs/language.md is written by hand).
//
// Nothing here uses a process, the network, or a clock, except to limit an evaluation. Only
// LoadFile, Find and Pin read files.
//
// Expressions are total: they run within limits of steps, memory and time, and any failure is an
// error.
package specs
