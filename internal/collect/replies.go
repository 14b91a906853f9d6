package collect

import (
	"path/filepath"

	"sluice/agents/launch"
	"sluice/gates"
	"sluice/internal/atomicfile"
	"sluice/internal/layout"
	"sluice/internal/prompt"
)

// PromptText is what a launch was asked.
func (co *Collector) PromptText(rel string) []byte {
	data, _, err := atomicfile.OpenRegular(co.Root, filepath.FromSlash(rel+"/prompt.md"), prompt.Max)
	if err != nil {
		return nil // then no quote of it is known as one
	}
	return data
}

// KeepReply keeps the words that no answer, or no verdict, could be read from, for a person to look at.
func (co *Collector) KeepReply(rel string, end launch.Ended) {
	if end.Dir == "" {
		return
	}
	if err := co.WriteFile(rel+"/"+layout.ReplyFile, []byte(end.Stdout(gates.MaxReply))); err != nil {
		co.opt.Logf("%s: %v", rel, err)
	}
}
