package conform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestRuleLeavesALine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "records")
	t.Setenv(Env, dir)
	t.Run("one", func(t *testing.T) { Rule(t, "8-semantics 15a", "a list sends when its tasks have ended") })
	t.Run("skipped", func(t *testing.T) {
		Rule(t, "field asks 3", "a silent agent is ended")
		t.Skip("on purpose")
	})
	t.Run("three", func(t *testing.T) { Part(t, "script", "field asks 4", "by one of its scripts") })
	raw, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.jsonl", os.Getpid())))
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	want := []Record{
		{Doc: "8-semantics", Rule: "15a", Sentence: "a list sends when its tasks have ended", Package: "sluice/tools/conform", Test: "TestRuleLeavesALine/one", Result: "passed"},
		{Doc: "field", Rule: "asks 3", Sentence: "a silent agent is ended", Package: "sluice/tools/conform", Test: "TestRuleLeavesALine/skipped", Result: "skipped"},
		{Doc: "field", Rule: "asks 4", Sentence: "by one of its scripts", Package: "sluice/tools/conform", Test: "TestRuleLeavesALine/three", Part: "script", Result: "passed"},
	}
	for _, w := range want {
		var got Record
		if err := dec.Decode(&got); err != nil || got != w {
			t.Errorf("got %+v (%v), want %+v", got, err, w)
		}
	}
	if dec.More() {
		t.Error("more lines than calls")
	}
}

func TestRuleIsSilentByDefault(t *testing.T) {
	t.Setenv(Env, "")
	t.Run("one", func(t *testing.T) { Rule(t, "1-language 1", "x") })
}
