package config

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPassed(t *testing.T) {
	t.Parallel()
	env := []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "TERM=xterm", "AWS_KEY=k", "GITHUB_TOKEN=t", "HTTPS_PROXY=p", "PATHS=x"}
	tests := []struct {
		name              string
		allow, deny, want []string
	}{
		{"everything", nil, nil, env},
		{"all but some", nil, []string{"*_TOKEN", "AWS_*"}, []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "TERM=xterm", "HTTPS_PROXY=p", "PATHS=x"}},
		{"some, and what every program needs", []string{"HTTPS_*"}, nil, []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "TERM=xterm", "HTTPS_PROXY=p"}},
		{"deny wins", []string{"*"}, []string{"HOME", "GITHUB_TOKEN"}, []string{"PATH=/bin", "LC_ALL=C", "TERM=xterm", "AWS_KEY=k", "HTTPS_PROXY=p", "PATHS=x"}},
	}
	for _, tt := range tests {
		got := passed(slices.Clone(env), tt.allow, tt.deny)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
