package doctor

// checkEnvFile: variables that a session cannot be given.
func checkEnvFile(_ *Facts, a *Agent) []Finding {
	if a.EnvProblem == nil {
		return nil
	}
	return []Finding{{
		Severity: Error, Code: "env-file", Seen: a.EnvProblem.Error(), Why: "no session starts without its variables",
		Fix: "correct " + a.Config.EnvFile + ", and chmod 600 it",
	}}
}
