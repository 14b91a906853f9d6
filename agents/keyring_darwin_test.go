package agents

const keyringArg = "keyring"

func keyringMain(string) int { return 1 }
