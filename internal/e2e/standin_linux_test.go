package e2e

const standInName = "simulate"

func standInMain(args []string) int { return 1 }
