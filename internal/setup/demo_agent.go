package setup

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/signals"
)

// demoThinks is how long the demo's agents pretend to think, so that one sees them work.
const demoThinks = 700 * time.Millisecond

// PlayDemo is the agent of every role in the demo. It does what a real one would: it reads what it is given, writes its
// outputs into its folder, and says that it is done by the file that it was told of.
func PlayDemo(ctx context.Context, con *console.Console, role string) error {
	select {
	case <-ctx.Done():
		return context.Canceled
	case <-time.After(demoThinks):
	}
	switch role {
	case "test-writer":
		return demoTests(con)
	case "reviewer":
		return demoReview(con)
	case "implementor":
		return demoBuild(con)
	}
	return fault.Misused("one of: test-writer, reviewer, implementor", "the demo has no role %q", text.Line(role))
}

// demoFile is a file of the demo's.
func demoFile(name string) []byte {
	data, err := demoFiles.ReadFile("demo/" + name)
	if err != nil {
		panic("demo: " + err.Error())
	}
	return data
}

// demoTests writes the tests, the second time with what the review asked for.
func demoTests(con *console.Console) error {
	tests, words := demoFile("test_index.py"), "wrote a test for finding all words"
	if found, err := filepath.Glob(filepath.Join("..", layout.RetryDir, "XG-1-2-*.md")); err == nil && len(found) > 0 {
		tests = append(tests, demoFile("test_empty.py")...)
		words = "added a test for the empty query, as the review asked"
		con.Print("read %s", filepath.Base(found[len(found)-1]))
	}
	if err := write("test/test_index.py", append(tests, demoFile("test_main.py")...)); err != nil {
		return err
	}
	con.Print("%s", words)
	return demoSay(con, words)
}

func demoBuild(con *console.Console) error {
	for to, from := range map[string]string{"src/chatcat/index.py": "index.py", "src/chatcat/search.py": "search.py"} {
		if err := write(to, demoFile(from)); err != nil {
			return err
		}
	}
	words := "index and search; all tests pass"
	if found, err := filepath.Glob(filepath.Join("..", layout.RetryDir, "XG-2-end-*.md")); err == nil && len(found) > 0 {
		words = "read " + filepath.Base(found[len(found)-1]) + "; a real agent would now do as you say"
	}
	con.Print("%s", words)
	return demoSay(con, words)
}

// demoReview fails tests without one for the empty query.
func demoReview(con *console.Console) error {
	tests, err := os.ReadFile("test/test_index.py")
	if err != nil {
		return err
	}
	v := map[string]any{"verdict": "pass", "feedback": "The plan's three sentences each have a test."}
	if !strings.Contains(string(tests), "empty_query") {
		v = map[string]any{"verdict": "fail",
			"feedback": "The plan says that an empty query gives no documents. No test holds it: add one.",
			"findings": []map[string]any{{"severity": "major", "file": "test/test_index.py", "line": 5,
				"message": "the empty query is not tested"}}}
	}
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	con.Print("```json\n%s\n```", raw)
	return nil
}

// demoSay writes the sentinel that the step waits for.
func demoSay(con *console.Console, summary string) error {
	file := con.Getenv("SLUICE_SIGNAL")
	if file == "" {
		return fault.Failed("only `sluice demo` starts it", "demo-agent: SLUICE_SIGNAL is not set")
	}
	raw, err := json.Marshal(map[string]any{"step": con.Getenv("SLUICE_STEP"), "status": signals.Done, "summary": summary,
		"run": con.Getenv("SLUICE_RUN"), "token": con.Getenv("SLUICE_TOKEN")})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(file, raw, 0o644)
}
