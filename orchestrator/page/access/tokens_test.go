package access

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/internal/testbed"
	"heartbeat/ptyrun/peer"
)

func TestALinkIsGoodOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := NewKeeper(dir, nil)
	link, _, err := k.Link("phone", Act)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var good atomic.Int32
	var secret atomic.Value
	for range 8 { // several browsers, and several processes, at once
		all.Go(func() {
			if s, made, err := NewKeeper(dir, nil).Redeem(link); err == nil {
				good.Add(1)
				secret.Store(s)
				if made.Name != "phone" || made.Role != Act {
					t.Errorf("%+v", made)
				}
			} else if !errors.Is(err, ErrWrong) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if good.Load() != 1 {
		t.Fatalf("it was good %d times", good.Load())
	}
	s := secret.Load().(string)
	if found, err := k.Find(s); err != nil || found.Name != "phone" {
		t.Errorf("%+v, %v", found, err)
	}
	for _, wrong := range []string{"", link, s[1:], s + "x"} {
		if _, err := k.Find(wrong); !errors.Is(err, ErrNone) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	for _, name := range []string{"page/tokens.json", ".page-lock"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		info, bad := os.Stat(filepath.Join(dir, name))
		if err != nil || bad != nil || info.Mode().Perm() != 0o600 || bytes.Contains(text, []byte(s)) || bytes.Contains(text, []byte(link)) {
			t.Errorf("%s: %v %v %v %s", name, err, bad, info.Mode(), text)
		}
	}
	if gone, err := NewKeeper(dir, nil).Revoke(false, "phone"); err != nil || len(gone) != 1 {
		t.Errorf("%v, %v", gone, err)
	}
	if _, err := k.Find(s); !errors.Is(err, ErrNone) {
		t.Errorf("revoked by another process, and found: %v", err)
	}
}

func TestTimeEndsLinksAndTokens(t *testing.T) {
	t.Parallel()
	now := time.Now()
	k := NewKeeper(t.TempDir(), func() time.Time { return now })
	late, _, err := k.Link("", Look)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(LinkLasts)
	if _, _, err := k.Redeem(late); !errors.Is(err, ErrWrong) {
		t.Error(err)
	}
	link, _, err := k.Link("", Look)
	if err != nil {
		t.Fatal(err)
	}
	secret, made, err := k.Redeem(link)
	if err != nil || made.Name != made.ID {
		t.Fatal(made, err)
	}
	now = now.Add(TokenLasts - time.Second)
	if found, err := k.Find(secret); err != nil || !found.Used.Equal(made.Used) {
		t.Errorf("%+v, %v", found, err)
	}
	if all, _, err := k.Tokens(); err != nil || len(all) != 1 || !all[0].Used.Equal(now) {
		t.Errorf("%+v, %v, want used %v", all, err, now)
	}
	now = now.Add(time.Second)
	if _, err := k.Find(secret); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

// TestAClockThatWasAheadMakesNoLongerTokens: what was made in a wrong year, or before the
// clock was set back, lasts as long as what is made now.
func TestAClockThatWasAheadMakesNoLongerTokens(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{-7 * 365 * 24 * time.Hour, -25 * time.Hour, -time.Hour, 0} {
		for name, restarted := range map[string]bool{"same run": false, "another run": true} {
			dir, clock := t.TempDir(), testbed.NewClock()
			passed := time.Duration(0)
			now := func() time.Time { return clock.Now().Add(passed) }
			k := NewKeeper(dir, now)
			link, _, err := k.Link("", Look)
			secret, _, err2 := k.Redeem(link)
			unused, _, err3 := k.Link("", Look)
			command, _, err4 := k.Command("cli")
			if err := errors.Join(err, err2, err3, err4); err != nil {
				t.Fatal(err)
			}
			_, err = k.Find(secret)
			clock.Set(by)
			if restarted {
				k = NewKeeper(dir, now)
			}
			if _, err2 := k.Find(secret); errors.Join(err, err2) != nil {
				t.Errorf("%s, %v: not found: %v, %v", name, by, err, err2)
			}
			passed = LinkLasts + time.Minute
			if _, err := k.Offer(unused); !errors.Is(err, ErrWrong) {
				t.Errorf("%s, %v: a link of %v ago: %v", name, by, passed, err)
			}
			passed = TokenLasts + time.Minute
			if _, err := k.Find(secret); !errors.Is(err, ErrNone) {
				t.Errorf("%s, %v: a token of %v ago: %v", name, by, passed, err)
			}
			if _, err := k.FindCommand(command); !errors.Is(err, ErrNone) {
				t.Errorf("%s, %v: a command's token of %v ago: %v", name, by, passed, err)
			}
		}
	}
}

// TestAUseThatCannotBeWrittenIsNotTriedEachSecond: browsers that follow look each second.
func TestAUseThatCannotBeWrittenIsNotTriedEachSecond(t *testing.T) {
	t.Parallel()
	k, now := NewKeeper(t.TempDir(), nil), time.Now()
	for i, want := range []bool{true, false, true} {
		if got := k.tries("a", now.Add(time.Duration(i)*usedEvery/2)); got != want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

// TestADamagedFileLetsNobodyIn: nor does anything else in its place.
func TestADamagedFileLetsNobodyIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := NewKeeper(dir, nil)
	link, _, err := k.Link("", Look)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "page", "tokens.json")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.Redeem(link); err == nil || errors.Is(err, ErrWrong) {
		t.Error(err)
	}
	if _, err := k.Find(link); err == nil || errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

func TestThereIsABoundOfLinks(t *testing.T) {
	t.Parallel()
	k := NewKeeper(t.TempDir(), nil)
	for range mostLinks {
		if _, _, err := k.Link("", Look); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := k.Link("", Look); !errors.Is(err, ErrMany) {
		t.Error(err)
	}
	if gone, err := k.Revoke(true); err != nil || len(gone) != mostLinks {
		t.Error(len(gone), err)
	}
	if _, err := k.Revoke(false, "nobody"); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

func TestTriesAreCountedByAddress(t *testing.T) {
	t.Parallel()
	var all tries
	now := time.Now()
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for range mostTries {
		if many, _ := all.exhausted(a, now); many {
			t.Error("too early")
		}
		all.wrong(a, now)
	}
	if many, after := all.exhausted(a, now); !many || after <= 0 {
		t.Error(many, after)
	}
	if yes, _ := all.exhausted(b, now); yes {
		t.Error("another address may not")
	}
	if yes, _ := all.exhausted(a, now.Add(triesIn)); yes {
		t.Error("not a minute later either")
	}
	six, same := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::ffff:1")
	for range mostTries {
		all.wrong(six, now)
	}
	if yes, _ := all.exhausted(same, now); !yes {
		t.Error("a network has as many tries as addresses")
	}
	for i := range mostAddresses + 100 {
		all.wrong(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now)
	}
	if len(all.by) > mostAddresses+1 {
		t.Errorf("%d addresses are remembered", len(all.by))
	}
}

// TestATokenOfACommandIsNoBrowsers, and no browser's is a command's.
func TestATokenOfACommandIsNoBrowsers(t *testing.T) {
	t.Parallel()
	k := NewKeeper(t.TempDir(), nil)
	if has, err := k.HasCommand(); has || err != nil {
		t.Errorf("before: %v, %v", has, err)
	}
	secret, made, err := k.Command("laptop")
	if err != nil {
		t.Fatal(err)
	}
	link, _, err := k.Link("phone", Act)
	if err != nil {
		t.Fatal(err)
	}
	browsers, _, err := k.Redeem(link)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Find(secret); !errors.Is(err, ErrNone) {
		t.Errorf("a browser with it: %v", err)
	}
	if _, err := k.FindCommand(browsers); !errors.Is(err, ErrNone) {
		t.Errorf("a command with a browser's: %v", err)
	}
	if found, err := k.FindCommand(secret); err != nil || found.Name != "laptop" || found.Role != Command {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := k.Revoke(false, made.ID); err != nil {
		t.Error(err)
	}
	if _, err := k.FindCommand(secret); !errors.Is(err, ErrNone) {
		t.Errorf("after its end: %v", err)
	}
}

// TestAFleetHasANameOfItsOwn for its links: the same one in all processes, whatever else
// changes, and another one than another fleet's.
func TestAFleetHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name, err := NewKeeper(dir, nil).Host()
	if err != nil || !strings.HasPrefix(name, "heartbeat-") || !strings.HasSuffix(name, ".localhost") || name != strings.ToLower(name) {
		t.Fatalf("%q, %v", name, err)
	}
	if _, here := peer.NamesHere(name + ":8322"); !here {
		t.Errorf("%q is not served", name)
	}
	k := NewKeeper(dir, nil)
	if _, _, err := k.Link("", Look); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Revoke(true); err != nil {
		t.Fatal(err)
	}
	if again, err := k.Host(); err != nil || again != name {
		t.Errorf("%q, %v, want %q", again, err, name)
	}
	if other, err := NewKeeper(t.TempDir(), nil).Host(); err != nil || other == name {
		t.Errorf("another fleet's is %q, %v", other, err)
	}
}
