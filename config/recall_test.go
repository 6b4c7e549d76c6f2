package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestRecall: what was read is enough to know the whole fleet again.
func TestRecall(t *testing.T) {
	t.Parallel()
	path := fleetOf(t, map[string]string{
		"heartbeat.yaml":    "version: 1\ninclude: [one.yaml, 'teams/**/*.yaml']\nagents: {own: {dir: own}}\n",
		"one.yaml":          "agents: {one: {dir: one, trigger: {cron: '@daily', prompt-file: p.txt}}}\n",
		"p.txt":             "from a file\n",
		"teams/deep/x.yaml": "agents: {x: {dir: x}}\n",
		"teams/y.yaml":      "agents: {y: {dir: y}}\n",
	})
	f := mustLoad(t, path)
	for _, text := range f.Texts {
		if err := os.Remove(text.Path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "p.txt")); err == nil {
		t.Error("the prompt's file is none of the texts")
	}
	again, err := Recall(f.Texts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, again, cmpopts.IgnoreUnexported(Fleet{}), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("(-loaded +recalled):\n%s", diff)
	}
	if _, err := Recall(nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing kept: %v", err)
	}
}
