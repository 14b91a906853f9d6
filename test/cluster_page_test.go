package test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"sluice/tools/conform"
)

// The page's compose file and manifests are YAML with what the page says, and each sluice command in
// them has flags that there are.
func TestClusterContainers(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "13-cluster page", "the page has the compose file and the manifests, which are read here")
	raw, err := os.ReadFile("../docs/cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	page := section(t, string(raw), "Containers")
	kinds := map[string]map[string]any{}
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		for docs := yaml.NewDecoder(strings.NewReader(block[1])); ; {
			doc := map[string]any{}
			if err := docs.Decode(&doc); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v:\n%s", err, block[1])
			}
			kind, _ := doc["kind"].(string)
			kinds[kind] = doc
			commandsIn(t, doc)
		}
	}
	if servers, _ := kinds[""]["services"].(map[string]any); len(servers) != 3 {
		t.Errorf("the compose file has the services %v", servers)
	}
	for kind, replicas := range map[string]int{"StatefulSet": 2, "Deployment": 4} {
		spec, _ := kinds[kind]["spec"].(map[string]any)
		if spec["replicas"] != replicas {
			t.Errorf("%s has %v replicas, want %d", kind, spec["replicas"], replicas)
		}
	}
	if !strings.Contains(string(raw), "\n## Sizing\n") {
		t.Error("the page has no sizing")
	}
}

// commandsIn holds that the flags of each sluice command below a value are known.
func commandsIn(t *testing.T, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			commandsIn(t, x)
		}
	case []any:
		var words []string
		for _, x := range v {
			if word, ok := x.(string); ok {
				words = append(words, word)
			}
			commandsIn(t, x)
		}
		knows(t, words)
	case string:
		for line := range strings.Lines(v) {
			knows(t, strings.Fields(line))
		}
	}
}

// knows holds that a command of sluice, if it is one, has its flags.
func knows(t *testing.T, words []string) {
	t.Helper()
	if len(words) < 2 || words[0] != "sluice" {
		return
	}
	path := []string{"help"}
	for _, w := range words[1:] {
		if !regexp.MustCompile(`^[a-z]+$`).MatchString(w) {
			break
		}
		path = append(path, w)
	}
	help, err := exec.Command(filepath.Join(binDir(t), "sluice"), path...).Output()
	if err != nil {
		t.Fatalf("%v: %v", path, err)
	}
	for _, w := range words {
		if strings.HasPrefix(w, "--") && !strings.Contains(string(help), w+" ") {
			t.Errorf("sluice %s has no %s", strings.Join(path[1:], " "), w)
		}
	}
}
