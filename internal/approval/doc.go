// Package approval holds what a person signs, and checks the signature: an Approval is a word at a
// gate, a Checkpoint says how far the journal had come. Both are a few lines of plain text that a
// person can read before signing, with an OpenSSH signature (SSHSIG, as `ssh-keygen -Y sign` makes
// it) below them.
//
// Whose signature counts stands in a List, in the form of OpenSSH's allowed_signers. A Store keeps
// the list of a repo, and which keys were revoked, in the repo's state folder.
//
// Signing itself is left to ssh-keygen, which knows passphrases, agents and keys that want a touch;
// a Keyring finds the key.
package approval
