package program

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Resume returns the command that opens a conversation for a person in a terminal, or nil.
func Resume(format, session string) []string {
	if open := profileOf(format).resume; open != nil {
		return append(open, session)
	}
	return nil
}

// Transcript returns the file of a conversation, below the program's own folder; "" if there is
// none or it is ambiguous. session is a plain name.
func Transcript(format, home, session string) string {
	kept := profileOf(format).kept
	if kept == nil {
		return ""
	}
	found, err := fs.Glob(os.DirFS(home), kept(session))
	if err != nil || len(found) != 1 {
		return ""
	}
	return filepath.FromSlash(found[0])
}
