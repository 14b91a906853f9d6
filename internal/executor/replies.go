package executor

import (
	"path/filepath"

	"sluice/agents/launch"
	"sluice/daemon"
	"sluice/gates"
	"sluice/internal/atomicfile"
	"sluice/internal/prompt"
)

// promptText is what a launch was asked.
func (co *Collector) promptText(rel string) []byte {
	data, _, err := atomicfile.OpenRegular(co.Root, filepath.FromSlash(rel+"/prompt.md"), prompt.Max)
	if err != nil {
		return nil // then no quote of it is known as one
	}
	return data
}

// keepReply keeps the words that no answer, or no verdict, could be read from, for a person to look at.
func (co *Collector) keepReply(rel string, end launch.Ended) {
	if end.Dir == "" {
		return
	}
	if err := co.WriteFile(rel+"/"+daemon.ReplyFile, []byte(end.Stdout(gates.MaxReply))); err != nil {
		co.opt.Logf("%s: %v", rel, err)
	}
}

// corrections is how often an agent is asked again for an answer that cannot be read.
const corrections = gates.MaxCorrections
