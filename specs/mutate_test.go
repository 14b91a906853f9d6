package specs

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice/specs/graph"
)

// TestRandomChanges: specs that load, changed word by word, yield a spec or faults. What loads is
// valid by the schema and keeps its meaning through Format. The seed is fixed, so that failures are
// reproducible.
func TestRandomChanges(t *testing.T) {
	const changes = 200
	schema := compiledSchema(t)
	var files, words []string
	word := regexp.MustCompile(`[A-Za-z0-9_./-]+|[^\sA-Za-z0-9]`)
	for _, src := range goodSpecs(t) {
		files = append(files, string(src))
		words = append(words, word.FindAllString(string(src), -1)...)
	}
	slices.Sort(files) // the map has no order, the seed needs one
	slices.Sort(words)
	words = append(slices.Compact(words), "[]", "{}", "null", "~", "true", "0", "-1", "1e3", "''", "&a", "*a", "# x", "|", ">", "\n", "  ", "DONE", "human", "${{", "}}")
	rnd := rand.New(rand.NewPCG(1, 2))
	loads := 0
	for range changes {
		src := files[rnd.IntN(len(files))]
		for range 1 + rnd.IntN(3) {
			at := word.FindAllStringIndex(src, -1)
			if len(at) == 0 {
				break
			}
			span := at[rnd.IntN(len(at))]
			src = src[:span[0]] + words[rnd.IntN(len(words))] + src[span[1]:]
		}
		spec, faults := Load("", []byte(src))
		if (spec == nil) == (len(faults) == 0) {
			t.Fatalf("neither a spec nor faults:\n%s", src)
		}
		if spec != nil {
			loads++
			if err := schema.Validate(asJSON(t, []byte(src))); err != nil {
				t.Fatalf("Load takes what the schema does not: %v\n%s", err, src)
			}
			_ = graph.Text(spec, nil, graph.Options{}) + graph.Mermaid(spec, nil, graph.Options{}) + graph.Dot(spec, nil, graph.Options{}) + string(graph.SVG(spec, nil, graph.Options{}))
			if strings.Contains(src, "\r") {
				continue
			}
			if _, err := Format([]byte(src)); err != nil {
				t.Fatalf("Format of a spec that loads: %v\n%s", err, src)
			}
		}
		checkFormat(t, []byte(src))
	}
	if loads < changes/20 {
		t.Errorf("only %d of %d changed specs load: the test tests little", loads, changes)
	}
}
