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
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/ptyrun/peer"
)

func TestALinkIsGoodOnce(t *testing.T) {
	t.Parallel()
	kept := storetest.New(t, t.TempDir())
	k := keeper(t, kept, nil)
	link, _, err := k.Link(t.Context(), "phone", Act)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var good atomic.Int32
	var secret atomic.Value
	for range 8 { // several browsers at once
		all.Go(func() {
			if s, made, err := k.Redeem(t.Context(), link); err == nil {
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
	if found, good := k.Find(t.Context(), s); !good || found.Name != "phone" {
		t.Errorf("%+v, %v", found, good)
	}
	for _, wrong := range []string{"", link, s[1:], s + "x"} {
		if _, good := k.Find(t.Context(), wrong); good {
			t.Errorf("%q is good", wrong)
		}
	}
	if err := kept.Backup(t.Context(), filepath.Join(kept.Dir(), "all")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(kept.Dir(), "all"))
	if err != nil || !bytes.Contains(text, []byte(HashOf(s))) || bytes.Contains(text, []byte(s)) || bytes.Contains(text, []byte(link)) {
		t.Errorf("the store has a secret, or not its hash: %v", err)
	}
	if gone, err := k.Revoke(t.Context(), false, "phone"); err != nil || len(gone) != 1 {
		t.Errorf("%v, %v", gone, err)
	}
	for what, k := range map[string]*Keeper{"the same": k, "the next run's": keeper(t, kept, nil)} {
		if _, good := k.Find(t.Context(), s); good {
			t.Errorf("revoked, and good: %s", what)
		}
	}
}

// keeper is a run's.
func keeper(t *testing.T, s *store.Store, now func() time.Time) *Keeper {
	t.Helper()
	k, err := Open(t.Context(), s, now)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// list is who has a token, as a command reads it.
func list(t *testing.T, k *Keeper) List {
	t.Helper()
	l, err := store.Get(t.Context(), k.store.Reader, func(v *store.View) (List, error) { return Read(v, k.now()) })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTimeEndsLinksAndTokens(t *testing.T) {
	t.Parallel()
	now := time.Now()
	k := keeper(t, storetest.New(t, t.TempDir()), func() time.Time { return now })
	late, _, err := k.Link(t.Context(), "", Look)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(LinkLasts)
	if _, _, err := k.Redeem(t.Context(), late); !errors.Is(err, ErrWrong) {
		t.Error(err)
	}
	link, _, err := k.Link(t.Context(), "", Look)
	if err != nil {
		t.Fatal(err)
	}
	secret, made, err := k.Redeem(t.Context(), link)
	if err != nil || made.Name != made.ID {
		t.Fatal(made, err)
	}
	now = now.Add(TokenLasts - time.Second)
	if found, good := k.Find(t.Context(), secret); !good || !found.Used.Equal(made.Used) {
		t.Errorf("%+v, %v", found, good)
	}
	if all := list(t, k).Tokens; len(all) != 1 || all[0].Used.UnixMilli() != now.UnixMilli() {
		t.Errorf("%+v, want used %v", all, now)
	}
	now = now.Add(time.Second)
	if _, good := k.Find(t.Context(), secret); good || len(list(t, k).Tokens) > 0 {
		t.Error("it is good for longer")
	}
}

// TestAClockThatWasAheadMakesNoLongerTokens: what was made in a wrong year, or before the
// clock was set back, lasts as long as what is made now.
func TestAClockThatWasAheadMakesNoLongerTokens(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{-7 * 365 * 24 * time.Hour, -25 * time.Hour, -time.Hour, 0} {
		for name, restarted := range map[string]bool{"same run": false, "another run": true} {
			kept, clock := storetest.New(t, t.TempDir()), testbed.NewClock()
			passed := time.Duration(0)
			now := func() time.Time { return clock.Now().Add(passed) }
			k := keeper(t, kept, now)
			link, _, err := k.Link(t.Context(), "", Look)
			secret, _, err2 := k.Redeem(t.Context(), link)
			unused, _, err3 := k.Link(t.Context(), "", Look)
			command, _, err4 := k.Command(t.Context(), "cli")
			if err := errors.Join(err, err2, err3, err4); err != nil {
				t.Fatal(err)
			}
			_, was := k.Find(t.Context(), secret)
			clock.Set(by)
			if restarted {
				k = keeper(t, kept, now)
			}
			if _, is := k.Find(t.Context(), secret); !was || !is {
				t.Errorf("%s, %v: good before %v, and after %v", name, by, was, is)
			}
			passed = LinkLasts + time.Minute
			if _, good := k.Offer(unused); good {
				t.Errorf("%s, %v: a link of %v ago is good", name, by, passed)
			}
			passed = TokenLasts + time.Minute
			if _, good := k.Find(t.Context(), secret); good {
				t.Errorf("%s, %v: a token of %v ago is good", name, by, passed)
			}
			if _, err := k.FindCommand(t.Context(), command); !errors.Is(err, ErrNone) {
				t.Errorf("%s, %v: a command's token of %v ago: %v", name, by, passed, err)
			}
		}
	}
}

// TestAUseThatCannotBeWrittenIsNotTriedEachSecond: browsers that follow look each second.
func TestAUseThatCannotBeWrittenIsNotTriedEachSecond(t *testing.T) {
	t.Parallel()
	k, now := &Keeper{}, time.Now()
	for i, want := range []bool{true, false, true} {
		if got := k.tries("a", now.Add(time.Duration(i)*usedEvery/2)); got != want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

// TestABackupBringsNoTokenBack: what was revoked or opened since it was made stays so, and what
// was made since stays good.
func TestABackupBringsNoTokenBack(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"with the store in its place": true, "without": false} {
		kept := storetest.New(t, t.TempDir())
		k := keeper(t, kept, nil)
		backup := filepath.Join(t.TempDir(), "backup")
		revoked, _, err := k.Link(t.Context(), "revoked", Look)
		opened, _, err2 := k.Link(t.Context(), "opened", Look)
		host, err3 := k.Host(t.Context())
		if err := errors.Join(err, err2, err3, kept.Backup(t.Context(), backup)); err != nil {
			t.Fatal(err)
		}
		_, err = k.Revoke(t.Context(), false, "revoked")
		secret, _, err2 := k.Redeem(t.Context(), opened)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		lock, err := store.Take(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.Restore(t.Context(), lock, backup, func(_ *store.View, c *store.Change) error {
			if !known {
				return Carry(nil, c, time.Now())
			}
			return kept.Read(t.Context(), func(v *store.View) error { return Carry(v, c, time.Now()) })
		})
		if err := errors.Join(err, lock.Release()); err != nil {
			t.Fatal(err)
		}
		k = keeper(t, storetest.New(t, dir), nil)
		_, link := k.Offer(revoked)
		_, again := k.Offer(opened)
		_, token := k.Find(t.Context(), secret)
		if link || again || token != known {
			t.Errorf("%s: a revoked link is good: %v, one that was opened: %v, its token: %v", name, link, again, token)
		}
		if now, err := k.Host(t.Context()); now != host || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, now, err, host)
		}
	}
}

func TestThereIsABoundOfLinks(t *testing.T) {
	t.Parallel()
	k := keeper(t, storetest.New(t, t.TempDir()), nil)
	for range mostLinks {
		if _, _, err := k.Link(t.Context(), "", Look); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := k.Link(t.Context(), "", Look); !errors.Is(err, ErrMany) {
		t.Error(err)
	}
	if gone, err := k.Revoke(t.Context(), true); err != nil || len(gone) != mostLinks {
		t.Error(len(gone), err)
	}
	if _, err := k.Revoke(t.Context(), false, "nobody"); !errors.Is(err, ErrNone) {
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
	k := keeper(t, storetest.New(t, t.TempDir()), nil)
	if k.HasCommand() || list(t, k).HasCommand() {
		t.Error("it has one before")
	}
	secret, made, err := k.Command(t.Context(), "laptop")
	if err != nil {
		t.Fatal(err)
	}
	link, _, err := k.Link(t.Context(), "phone", Act)
	if err != nil {
		t.Fatal(err)
	}
	browsers, _, err := k.Redeem(t.Context(), link)
	if err != nil {
		t.Fatal(err)
	}
	if _, good := k.Find(t.Context(), secret); good {
		t.Error("it is a browser's")
	}
	if !k.HasCommand() || !list(t, k).HasCommand() {
		t.Error("it has none")
	}
	if _, err := k.FindCommand(t.Context(), browsers); !errors.Is(err, ErrNone) {
		t.Errorf("a command with a browser's: %v", err)
	}
	if found, err := k.FindCommand(t.Context(), secret); err != nil || found.Name != "laptop" || found.Role != Command {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := k.Revoke(t.Context(), false, made.ID); err != nil {
		t.Error(err)
	}
	if _, err := k.FindCommand(t.Context(), secret); !errors.Is(err, ErrNone) {
		t.Errorf("after its end: %v", err)
	}
}

// TestAFleetHasANameOfItsOwn for its links: the same one in all processes, whatever else
// changes, and another one than another fleet's.
func TestAFleetHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	kept := storetest.New(t, t.TempDir())
	name, err := keeper(t, kept, nil).Host(t.Context())
	if err != nil || !strings.HasPrefix(name, "heartbeat-") || !strings.HasSuffix(name, ".localhost") || name != strings.ToLower(name) {
		t.Fatalf("%q, %v", name, err)
	}
	if _, here := peer.NamesHere(name + ":8322"); !here {
		t.Errorf("%q is not served", name)
	}
	k := keeper(t, kept, nil)
	if _, _, err := k.Link(t.Context(), "", Look); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Revoke(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if again, err := k.Host(t.Context()); err != nil || again != name {
		t.Errorf("%q, %v, want %q", again, err, name)
	}
	if other, err := keeper(t, storetest.New(t, t.TempDir()), nil).Host(t.Context()); err != nil || other == name {
		t.Errorf("another fleet's is %q, %v", other, err)
	}
}
