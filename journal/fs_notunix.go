//go:build !unix

package journal

// syncDir does nothing: Windows cannot sync a folder; NTFS journals its names
// itself.
func syncDir(string) error { return nil }
