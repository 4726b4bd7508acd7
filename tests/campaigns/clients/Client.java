// JDBC: run with `java -cp postgresql.jar Client.java`; prints a line for each step.

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

public class Client {
    interface Step {
        String run() throws SQLException;
    }

    static String statement(String name) {
        return System.getenv("HUBBUB_" + name);
    }

    static String text(ResultSet rows) throws SQLException {
        List<String> lines = new ArrayList<>();
        while (rows.next()) {
            List<String> cells = new ArrayList<>();
            for (int i = 1; i <= rows.getMetaData().getColumnCount(); i++) {
                cells.add(String.valueOf(rows.getObject(i)));
            }
            lines.add(String.join("|", cells));
        }
        return String.join(";", lines);
    }

    static String names(ResultSet rows, String column) throws SQLException {
        List<String> lines = new ArrayList<>();
        while (rows.next()) {
            lines.add(rows.getString(column));
        }
        return String.join(";", lines);
    }

    static void step(String name, Step step) {
        String line;
        try {
            line = step.run();
        } catch (SQLException error) {
            line = "error: " + error.getMessage();
        }
        System.out.println(name + "\t" + line.replace("\n", " "));
    }

    public static void main(String[] arguments) throws SQLException {
        String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/hubbub";
        try (Connection connection = DriverManager.getConnection(url, System.getenv("PGUSER"), System.getenv("PGPASSWORD"));
                Statement plain = connection.createStatement()) {
            System.out.println("version\t" + connection.getMetaData().getDriverVersion());
            plain.execute(statement("PRICE"));
            step("sign in", () -> text(plain.executeQuery(statement("ONE"))));
            step("tables", () -> names(connection.getMetaData().getTables(null, "public", "%", null), "TABLE_NAME"));
            step("columns", () -> names(connection.getMetaData().getColumns(null, "public", "visits", "%"), "COLUMN_NAME"));
            step("explain", () -> text(plain.executeQuery(statement("EXPLAIN"))));
            step("priced", () -> text(plain.executeQuery(statement("COUNTS"))));
            step("again", () -> text(plain.executeQuery(statement("COUNTS"))));
            step("refused", () -> text(plain.executeQuery(statement("REFUSED"))));
            step("after", () -> text(plain.executeQuery(statement("ONE"))));
            step("types", () -> text(plain.executeQuery(statement("TYPES"))));
            step("prepared", () -> {
                try (PreparedStatement prepared = connection.prepareStatement(statement("PREPARED") + "?")) {
                    prepared.setInt(1, Integer.parseInt(statement("LIMIT")));
                    return text(prepared.executeQuery());
                }
            });
        }
    }
}
