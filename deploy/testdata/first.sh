#!/bin/bash
# The first boot: a user's service and the machine's, from install to reboot.
BOOT=first
. /out/common.sh
# As a machine that is no container has it: sandboxes write there, each for its own namespace.
mount -o remount,rw,bind /proc/sys
S="/home/ann/my tools/100%h \$HOME/sluice"
mkdir -p "$(dirname "$S")" "/home/ann/my agents/50%"
cp /out/sluice "$S"
chown -R ann: /home/ann
soon user-manager test -S /run/user/1000/systemd/private
repo /home/ann/repo && chown -R ann: /home/ann

is install ann "$S" service install --linger no
odd='a "b" \c $d `e` 100% '"'f'"
is installed-again ann ODD="$odd" "$S" service install --linger no --env ODD
is status ann "$S" service status
ann "$S" service status
U=/home/ann/.config/systemd/user/sluice.service
is verify systemd-analyze verify --man=no "$U"
same env-mode 600 "$(stat -c %a /home/ann/.config/sluice/service.env)"
same path-captured '/home/ann/my agents/50%:/usr/bin:/bin' "$(tr '\0' '\n' < "/proc/$(manager show -P MainPID sluice)/environ" | sed -n 's/^PATH=//p')"
wanted() { manager list-dependencies default.target --plain | grep -q sluice.service; }
same odd-value-captured "$odd" "$(tr '\0' '\n' < "/proc/$(manager show -P MainPID sluice)/environ" | sed -n 's/^ODD=//p')"
priority() { journalctl --no-pager -p warning _SYSTEMD_USER_UNIT=sluice.service | grep -q 'the list of repos is empty'; }
soon log-has-priorities priority
is wanted-by-default wanted

cd /home/ann/repo
is watch ann "$S" watch add
is start ann "$S" start long
soon agent-runs has starts 1
group=$(manager show -P ControlGroup sluice)

# A crash.
kill -9 "$(manager show -P MainPID sluice)"
back() { [ "$(manager show -P NRestarts sluice) $(manager show -P ActiveState sluice)" = "1 active" ]; }
soon back back
went=$(manager show -P ActiveExitTimestampMonotonic sluice) came=$(manager show -P ActiveEnterTimestampMonotonic sluice)
echo "figure back-ms $(((came - went) / 1000))"
is agent-works-on grows ticks

# A restart.
is restart ann "$S" service restart
same not-started-again 1 "$(lines starts)"
is agent-works-after-restart grows ticks
touch go
completed() { ann "$S" -C /home/ann/repo status last | grep -q completed; }
soon adopted completed
same started-once 1 "$(lines starts)"

# A wanted stop, by either way.
ann "$S" start long
soon second-runs has starts 2
is stop ann "$S" service stop
same nothing-left 0 "$(procs "$group")"
same told-to-end 1 "$(lines told)"
ann "$S" service status && not stopped-exit: 0 || ok stopped-exit
stopped() { ann "$S" service status | grep -q '^stopped'; }
is stopped stopped
is service-start ann "$S" service start
soon launched-again has starts 3
is systemctl-stop manager stop sluice
same nothing-left-either 0 "$(procs "$group")"
manager start sluice
soon launched-a-third-time has starts 4

# A stop that comes between a crash and the next start: systemd runs nothing then, sluice ends what the daemon left.
kill -9 "$(manager show -P MainPID sluice)"
is stop-after-crash ann "$S" service stop
same nothing-left-after-crash 0 "$(procs "$group")"

# A daemon by hand, and the service beside it.
ann "$S" daemon &
byhand() { ann "$S" watch ls --json | grep -q '"daemon": true'; }
soon by-hand byhand
is says-who-runs says 'a daemon runs already, pid' ann "$S" service start
kill $(pgrep -u ann -f 'sluice daemon$')
wait
is start-after-by-hand ann "$S" service start

# What the doctor finds in there, and not in this shell: the agent is on the service's PATH alone, then on none.
mkdir -p .workflow/specs
cat > .workflow/specs/agent.yaml <<-EOF
	workflow: {id: agent}
	steps: [{id: A, agent: {type: a}, next_step: DONE}]
EOF
printf 'agents:\n  mine: {command: [my-agent]}\nroles:\n  "*": {agent: mine}\n' > /home/ann/.config/sluice/config.yaml
printf '#!/bin/sh\n' > "/home/ann/my agents/50%/my-agent"
chmod +x "/home/ann/my agents/50%/my-agent"
chown -R ann: /home/ann
inside() { runuser -u ann -- env -i HOME=/home/ann USER=ann PATH=/usr/bin:/bin "$S" doctor --as-service; }
outside() { runuser -u ann -- env -i HOME=/home/ann USER=ann PATH=/usr/bin:/bin "$S" doctor; }
inside
is sandbox-in-user-unit says 'ok    sandbox' inside
is doctor-finds-agent-in-service says 'ok    agents' inside
is doctor-misses-agent-outside says 'fail  agents' outside
is doctor-tells-the-unit says "inside $U" inside
sed -i 's#^PATH=.*#PATH="/usr/bin:/bin"#' /home/ann/.config/sluice/service.env
is doctor-misses-agent-in-service says 'fail  agents' inside
same doctor-leaves-nothing '' "$(find /run/user/1000 -name '*once*')"

# How it stands, told truly.
printf 'nonsense: yes\n' > .workflow/config.yaml
manager restart sluice
soon degraded says '^degraded' ann "$S" service status
ann "$S" service status
ann "$S" service status > /dev/null && not degraded-exit: 0 || ok degraded-exit
rm .workflow/config.yaml
soon well-again says '^running' ann "$S" service status
echo 'XDG_STATE_HOME=/proc/nowhere' >> /home/ann/.config/sluice/service.env
manager restart sluice
soon crash-looping says '^crash-looping' ann "$S" service status
ann "$S" service status
sed -i /XDG_STATE_HOME/d /home/ann/.config/sluice/service.env
is install-mends ann "$S" service install
# Where systemd's own next start came first, it says for a minute that it has crashed often, with its pid.
soon running-again says '^running\|^crash-looping.*, pid ' ann "$S" service status

# The machine's own service.
cp /out/sluice /usr/local/bin/sluice
is system-install sluice service install --system
is system-verify systemd-analyze verify --man=no /etc/systemd/system/sluice.service
echo "figure exposure $(systemd-analyze security --no-pager sluice.service | sed -n 's/.*exposure level for sluice.service: \([0-9.]*\).*/\1/p')"
same system-user sluice "$(ps -o user= -p "$(systemctl show -P MainPID sluice)")"
repo /srv/app && chown -R sluice: /srv/app
cd /srv/app
is system-watch box sluice watch add
is system-start box sluice start long
soon system-agent has starts 1
sluice service status --system
is system-status sluice service status --system
is system-status-json says '"state": "running"' sluice service status --system --json
box sluice doctor
sluice doctor --as-service --system
is sandbox-in-system-unit says 'ok    sandbox' sluice doctor --as-service --system
kill -9 "$(systemctl show -P MainPID sluice)"
back() { [ "$(systemctl show -P NRestarts sluice) $(systemctl show -P ActiveState sluice)" = "1 active" ]; }
soon system-back back
went=$(systemctl show -P ActiveExitTimestampMonotonic sluice) came=$(systemctl show -P ActiveEnterTimestampMonotonic sluice)
echo "figure system-back-ms $(((came - went) / 1000))"
is system-agent-survived grows ticks
same system-not-started-again 1 "$(lines starts)"
group=$(systemctl show -P ControlGroup sluice)
is system-stop systemctl stop sluice
same system-nothing-left 0 "$(procs "$group")"
same system-told 1 "$(lines told)"
is system-begin systemctl start sluice
soon system-again has starts 2
cp starts /out/starts.first

journalctl --no-pager -n 60
ok end
