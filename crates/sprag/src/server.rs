//! Both listeners, from start to drain.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::admin::{Addresses, AdminSide};
use crate::app::App;
use crate::config::Settings;
use crate::config::{KeptToken, keep_admin_token};
use crate::gateway;
use crate::serve::{Aside, Limits, listen};

/// A Sprag whose ports are open but which does not serve yet.
pub struct Server {
    app: Arc<App>,
    proxy: TcpListener,
    admin: TcpListener,
    token: KeptToken,
}

impl Server {
    /// Opens both ports.
    ///
    /// # Errors
    /// When a port is taken, or the admin token can be neither read nor written, or is the viewers' too.
    pub async fn bind(app: Arc<App>) -> Result<Server> {
        let settings = app.settings.load_full();
        let proxy = bind(settings.proxy.listen, "proxy.listen", "--proxy").await?;
        let admin = bind(settings.admin.listen, "admin.listen", "--admin").await?;
        let token = match &settings.admin.token {
            Some(token) => KeptToken { token: token.clone(), is_new: false },
            None => keep_admin_token(&settings.data_dir).context("keeping the admin token")?,
        };
        if settings.admin.viewer_token.as_ref() == Some(&token.token) {
            bail!("`admin.viewer_token` is the admin token too; give viewers a token of their own");
        }
        Ok(Server { app, proxy, admin, token })
    }

    /// Where the proxy listens.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn proxy_addr(&self) -> Result<SocketAddr> {
        Ok(self.proxy.local_addr()?)
    }

    /// Where the dashboard and the admin API listen.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn admin_addr(&self) -> Result<SocketAddr> {
        Ok(self.admin.local_addr()?)
    }

    /// The link that logs a browser in.
    ///
    /// # Errors
    /// When the system does not say where the dashboard listens.
    pub fn login_link(&self) -> Result<String> {
        Ok(format!("http://{}/login?token={}", self.admin_addr()?, self.token.token.reveal()))
    }

    /// Says where to find what.
    ///
    /// # Errors
    /// When standard output is closed.
    pub fn greet(&self, out: &mut impl Write) -> Result<()> {
        let (proxy, admin) = (self.proxy_addr()?, self.admin_addr()?);
        writeln!(out, "Sprag {}", env!("CARGO_PKG_VERSION"))?;
        writeln!(out, "  proxy      http://{proxy}")?;
        if self.token.is_new {
            writeln!(out, "  dashboard  {}", self.login_link()?)?;
        } else {
            writeln!(out, "  dashboard  http://{admin}/")?;
        }
        writeln!(out, "  data       {}", self.app.data_dir().display())?;
        if !self.token.is_new && self.app.settings.load().admin.token.is_none() {
            writeln!(out, "  token      in {}", self.app.data_dir().join("admin-token").display())?;
        }
        writeln!(out, "\nPoint an agent at it:")?;
        writeln!(out, "  export OPENAI_BASE_URL=http://{proxy}/v1")?;
        writeln!(out, "  export ANTHROPIC_BASE_URL=http://{proxy}")?;
        writeln!(out, "  export GOOGLE_GEMINI_BASE_URL=http://{proxy}\n")?;
        out.flush()?;
        Ok(())
    }

    /// Serves until `shutdown`, then drains and flushes.
    ///
    /// # Errors
    /// When the last events cannot be written.
    pub async fn run(self, shutdown: CancellationToken) -> Result<()> {
        let settings = self.app.settings.load_full();
        let limits = limits(&settings);
        self.app.await_link().await;
        let addresses = Addresses { proxy: self.proxy_addr()?, admin: self.admin_addr()? };
        let joined = self.app.join_nodes().await?;
        let app = self.app.clone();
        let proxy = listen(
            self.proxy,
            limits,
            app.metrics.proxy_connections.clone(),
            shutdown.clone(),
            move |peer, mut request| {
                // A kill may name the address.
                request.extensions_mut().insert(peer);
                gateway::handle(app.clone(), request)
            },
        );
        let side = AdminSide::new(self.app.clone(), self.token.token.clone(), addresses, shutdown.clone());
        let side = Arc::new(side);
        let aside = Aside::start().context("starting the threads of the dashboard")?;
        let (admin, open, until) =
            (self.admin.into_std()?, self.app.metrics.admin_connections.clone(), shutdown.clone());
        let admin = aside.spawn(async move {
            // A socket belongs to the runtime that it was made in.
            let admin = TcpListener::from_std(admin)?;
            listen(admin, limits, open, until, move |peer, request| {
                let side = side.clone();
                async move { side.handle(peer, request).await }
            })
            .await;
            anyhow::Ok(())
        });
        let sweeping = tokio::spawn(self.app.clone().sweep_forever());
        let alerted = CancellationToken::new();
        let raising = tokio::spawn(self.app.clone().raise_alerts(alerted.clone()));
        let delivering = tokio::spawn(self.app.clone().deliver_alerts());
        let traced = CancellationToken::new();
        let exporting = tokio::spawn(self.app.clone().export_traces(traced.clone()));
        let adopting = tokio::spawn(self.app.clone().adopt_forever());
        let linked = tokio::spawn(self.app.clone().follow_link());
        let (proxy_drained, admin_served) = tokio::join!(proxy, admin);
        if !proxy_drained {
            tracing::warn!("some answers were still under way when the grace was over; they were cut");
        }
        sweeping.abort();
        adopting.abort();
        linked.abort();
        self.app.settling.close();
        self.app.settling.wait().await;
        self.app.leave_nodes(joined).await;
        traced.cancel();
        let _ = exporting.await;
        // What the last calls raised is on disk; what is not delivered waits for the next start.
        alerted.cancel();
        let _ = raising.await;
        delivering.abort();
        let _ = delivering.await;
        let history = self.app.history.clone();
        tokio::task::spawn_blocking(move || history.settle()).await?.context("writing the last events")?;
        drop(aside);
        admin_served?.context("serving the dashboard")
    }
}

async fn bind(addr: SocketAddr, key: &str, flag: &str) -> Result<TcpListener> {
    TcpListener::bind(addr).await.with_context(|| {
        format!("cannot listen on {addr}; is another Sprag running? Choose another address with `{key}` or {flag}")
    })
}

pub(crate) fn limits(settings: &Settings) -> Limits {
    Limits {
        max_connections: settings.proxy.max_connections,
        max_header_bytes: settings.proxy.max_header_bytes,
        header_read_timeout: settings.proxy.header_read_timeout,
        drain: settings.proxy.drain,
    }
}
