package collect

import (
	"path/filepath"

	"sluice/agents/launch"
	"sluice/gates"
	"sluice/internal/atomicfile"
	"sluice/internal/layout"
	"sluice/internal/prompt"
)

// PromptText returns what a launch was asked.
func (co *Collector) PromptText(rel string) []byte {
	data, _, err := atomicfile.OpenRegular(co.Root, filepath.FromSlash(rel+"/prompt.md"), prompt.Max)
	if err != nil {
		return nil // its quotes are not recognized then
	}
	return data
}

// KeepReply keeps an unreadable answer or verdict for a person.
func (co *Collector) KeepReply(rel string, end launch.Ended) {
	if end.Dir == "" {
		return
	}
	if err := co.WriteFile(rel+"/"+layout.ReplyFile, []byte(end.Stdout(gates.MaxReply))); err != nil {
		co.folders.Logf("%s: %v", rel, err)
	}
}
