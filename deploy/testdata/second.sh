#!/bin/bash
# The second boot: both services came by themselves and their runs go on; then they are taken away, and the Debian package
# comes and goes.
BOOT=second
. /out/common.sh
mount -o remount,rw,bind /proc/sys
S="/home/ann/my tools/100%h \$HOME/sluice"
soon system-autostart systemctl is-active sluice
soon user-autostart manager is-active sluice
cd /srv/app
soon run-goes-on has starts $(($(lines /out/starts.first) + 1))
box sluice log last | tail -n 15 # what was made of the end with the machine
soon status-after-boot sluice service status --system
touch go
completed() { box sluice status last | grep -q completed; }
soon system-completed completed
sluice audit verify >/dev/null 2>&1

is user-uninstall ann "$S" service uninstall
same user-leaves-no-file '' "$(find /home/ann/.config -name '*sluice.service*' -o -name service.env)"
same user-knows-no-unit not-found "$(manager show -P LoadState sluice)"
is user-uninstall-again ann "$S" service uninstall
is linger-was-found test -e /var/lib/systemd/linger/ann
is system-uninstall sluice service uninstall --system
same system-leaves-no-file '' "$(find /etc -name '*sluice.service*' -o -name service.env)"
same system-knows-no-unit not-found "$(systemctl show -P LoadState sluice)"
same nothing-runs '' "$(pgrep -af 'sluice (daemon|shim)')"

# Root's own service, with linger: what install switched on uninstall switches off.
export HOME=/root
is root-install sluice service install --linger yes
is root-lingers test -e /var/lib/systemd/linger/root
is root-uninstall sluice service uninstall
is root-lingers-no-more test ! -e /var/lib/systemd/linger/root

# The package.
userdel -r sluice
rm /usr/local/bin/sluice
hash -r
is package-installs dpkg -i /out/sluice.deb
same package-starts-nothing 'inactive disabled' "$(systemctl is-active sluice) $(systemctl is-enabled sluice)"
is package-user id sluice
is package-man test -s /usr/share/man/man1/sluice.1.gz
is package-completion bash -c '. /usr/share/bash-completion/completions/sluice && complete -p sluice'
is package-verify systemd-analyze verify --man=no /usr/lib/systemd/system/sluice.service
is package-enable systemctl enable --now sluice
cd /
rm -rf /srv/app
repo /srv/app && chown -R sluice: /srv/app
cd /srv/app
is package-watch box sluice watch add
is package-start box sluice start long
soon package-agent has starts 1
is package-status sluice service status --system
pid=$(systemctl show -P MainPID sluice)
is package-upgrade dpkg -i /out/sluice.deb
soon upgraded systemctl is-active sluice
[ "$pid" != "$(systemctl show -P MainPID sluice)" ] && ok upgrade-restarts || not upgrade-restarts: the old daemon runs on
is upgrade-keeps-agents grows ticks
same upgrade-starts-none 1 "$(lines starts)"
is package-removes dpkg -r sluice
same package-leaves-nothing '' "$(pgrep -af 'sluice (daemon|shim)')"
is conffile-stays test -e /etc/sluice/service.env
is package-purges dpkg -P sluice
is conffile-goes test ! -e /etc/sluice
is journals-stay test -d /var/lib/sluice
same unit-is-gone not-found "$(systemctl show -P LoadState sluice)"
journalctl --no-pager -n 80
ok end
