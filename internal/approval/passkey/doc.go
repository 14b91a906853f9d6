// Package passkey has people register passkeys and decide at gates with them, for a page that others
// serve. A passkey signs the same approval text as an SSH key, and becomes a line of the repo's list
// of approvers: `ssh-keygen -Y verify` checks what it signed.
//
// A Desk works on one repo. A registration has three steps:
//
//  1. The terminal: Invite returns a link with a code, for one use within Life.
//  2. The page, opened on the phone: BeginRegistration, navigator.credentials.create,
//     FinishRegistration. The page shows the fingerprint.
//  3. The terminal: Registered returns the same fingerprint; after a yes Confirm puts the key on the
//     list.
//
// Page and terminal are two processes that share files below the repo's state folder, out of reach
// of agents in a sandbox: passkeys/ID.json is the invitation, with a hash of the code; ID.key what
// the phone registered; ID.try.N a wrong code. Each is created once and never changed, so two
// requests cannot both use a code.
//
// Nothing is stored between the two requests of a decision. BeginDecision returns the text to sign, the
// browser sends it back, and FinishDecision compares it with what the gate asks by then. The engine
// accepts each nonce once.
//
// With AskWho and Who a page learns who is at a browser. What a passkey signs for that has a namespace
// of its own and counts at no gate.
package passkey
