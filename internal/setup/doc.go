// Package setup makes the first files of a repo: `.workflow/` with a shipped workflow, fitted to
// the agents and the tests that are found there (choice.go, write.go), and the throw-away repo of
// `sluice demo` with its agents and who answers its last gate (demo.go, demo_agent.go,
// demo_answer.go). It never overwrites a file.
package setup
