#!/bin/bash
# The first boot: a user's service and the machine's, from install to reboot.
BOOT=first
. /out/common.sh
S="/home/ann/my tools/100% \$HOME/sluice"
mkdir -p "$(dirname "$S")" "/home/ann/my agents/50%"
cp /out/sluice "$S"
chown -R ann: /home/ann
soon user-manager test -S /run/user/1000/systemd/private
repo /home/ann && chown -R ann: /home/ann

is install ann "$S" service install --linger no
is installed-again ann "$S" service install --linger no
is status ann "$S" service status
ann "$S" service status
U=/home/ann/.config/systemd/user/sluice.service
is verify systemd-analyze verify --man=no "$U"
same env-mode 600 "$(stat -c %a /home/ann/.config/sluice/service.env)"
same path-captured '/home/ann/my agents/50%:/usr/bin:/bin' "$(tr '\0' '\n' < "/proc/$(manager show -P MainPID sluice)/environ" | sed -n 's/^PATH=//p')"
wanted() { manager list-dependencies default.target --plain | grep -q sluice.service; }
is wanted-by-default wanted

cd /home/ann/repo
is watch ann "$S" watch add
is start ann "$S" start long
soon agent-runs has /home/ann/starts 1
agent=$(tail -1 /home/ann/starts)
group=$(manager show -P ControlGroup sluice)

# A crash.
kill -9 "$(manager show -P MainPID sluice)"
back() { [ "$(manager show -P NRestarts sluice) $(manager show -P ActiveState sluice)" = "1 active" ]; }
soon back back
went=$(manager show -P ActiveExitTimestampMonotonic sluice) came=$(manager show -P ActiveEnterTimestampMonotonic sluice)
echo "figure back-ms $(((came - went) / 1000))"
is agent-survived-crash kill -0 "$agent"
is agent-works-on grows /home/ann/ticks

# A restart.
is restart ann "$S" service restart
is agent-survived-restart kill -0 "$agent"
is agent-works-after-restart grows /home/ann/ticks
touch /home/ann/go
completed() { ann "$S" -C /home/ann/repo status last | grep -q completed; }
soon adopted completed
same started-once 1 "$(lines /home/ann/starts)"

# A wanted stop, by either way.
ann "$S" start long
soon second-runs has /home/ann/starts 2
is stop ann "$S" service stop
same nothing-left 0 "$(procs "$group")"
same told-to-end 1 "$(lines /home/ann/told)"
ann "$S" service status && not stopped-exit: 0 || ok stopped-exit
stopped() { ann "$S" service status | grep -q '^stopped'; }
is stopped stopped
is service-start ann "$S" service start
soon launched-again has /home/ann/starts 3
is systemctl-stop manager stop sluice
same nothing-left-either 0 "$(procs "$group")"
manager start sluice
soon launched-a-third-time has /home/ann/starts 4

journalctl --no-pager -n 60 _UID=1000
ok end
