package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"heartbeat/hook/owned"
)

// maxEnvFile bounds an env-file; a whole environment is at most 2 MiB
// (execve(2)).
const maxEnvFile = 1 << 20

// readEnvFile reads an env-file. Each line is NAME=VALUE. The value goes to the end
// of the line without surrounding blanks, or stands in single or double quotes,
// which are removed. Blank lines and lines that begin with # are skipped. The file
// must be a regular file that nobody else can read or change. Errors name
// lines and variables, never values.
func readEnvFile(file string) ([]string, error) {
	data, err := readPrivate(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read env-file %q: %w", file, reason(err))
	}
	var env []string
	number := 0
	for line := range bytes.Lines(data) {
		number++
		text := strings.TrimSpace(string(line))
		if text == "" || text[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(text, "=")
		switch {
		case !ok || !variableForm().MatchString(name):
			return nil, fmt.Errorf("cannot read env-file %q: line %d is not NAME=VALUE", file, number)
		case slices.Contains(ownVariables, name):
			return nil, fmt.Errorf("cannot read env-file %q: line %d: %s is set by heartbeat itself", file, number, name)
		case strings.ContainsRune(value, 0):
			return nil, fmt.Errorf("cannot read env-file %q: line %d: %s holds a NUL character", file, number, name)
		}
		env = append(env, name+"="+unquoted(strings.TrimSpace(value)))
	}
	return env, nil
}

func unquoted(value string) string {
	if n := len(value); n >= 2 && value[0] == value[n-1] && (value[0] == '"' || value[0] == '\'') {
		return value[1 : n-1]
	}
	return value
}

// readPrivate reads a text that nobody else can read or change: owned.CheckSecret.
func readPrivate(file string) ([]byte, error) {
	f, err := openRegular(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := owned.CheckSecret(f); err != nil {
		if e, ok := errors.AsType[*owned.Error](err); ok && e.Fix != "" {
			err = fmt.Errorf("%w; %s makes it private, in a container the volume's mode 0440", err, e.Fix)
		}
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxEnvFile+1))
	if err == nil && len(data) > maxEnvFile {
		err = fmt.Errorf("it is over %d MiB", maxEnvFile>>20)
	}
	if err != nil {
		return nil, err
	}
	return Written(data)
}
