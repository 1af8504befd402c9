-- The tables of TPC-C, with the columns that the transactions here use and filler for the others.
-- A number takes the place of each :warehouses.
CREATE TABLE warehouse (w_id int PRIMARY KEY, w_ytd numeric(12, 2), w_tax numeric(4, 4), w_filler text)
    WITH (fillfactor = 50);
CREATE TABLE district (d_w_id int, d_id int, d_next_o_id int, d_ytd numeric(12, 2), d_tax numeric(4, 4),
    d_filler text, PRIMARY KEY (d_w_id, d_id)) WITH (fillfactor = 50);
CREATE TABLE customer (c_w_id int, c_d_id int, c_id int, c_last text, c_balance numeric(12, 2),
    c_ytd_payment numeric(12, 2), c_data text, PRIMARY KEY (c_w_id, c_d_id, c_id));
CREATE TABLE history (h_c_id int, h_c_d_id int, h_c_w_id int, h_date timestamp, h_amount numeric(6, 2));
CREATE TABLE orders (o_w_id int, o_d_id int, o_id int, o_c_id int, o_carrier_id int, o_ol_cnt int,
    o_entry_d timestamp, PRIMARY KEY (o_w_id, o_d_id, o_id));
CREATE TABLE new_order (no_w_id int, no_d_id int, no_o_id int, PRIMARY KEY (no_w_id, no_d_id, no_o_id));
CREATE TABLE order_line (ol_w_id int, ol_d_id int, ol_o_id int, ol_number int, ol_i_id int,
    ol_delivery_d timestamp, ol_quantity int, ol_amount numeric(6, 2), ol_dist_info text,
    PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number));
CREATE TABLE item (i_id int PRIMARY KEY, i_price numeric(5, 2), i_name text, i_data text);
CREATE TABLE stock (s_w_id int, s_i_id int, s_quantity int, s_ytd int, s_order_cnt int, s_data text,
    PRIMARY KEY (s_w_id, s_i_id));

INSERT INTO warehouse SELECT w, 300000, 0.1, repeat('w', 80) FROM generate_series(1, :warehouses) w;
INSERT INTO district SELECT w, d, 3001, 30000, 0.1, repeat('d', 80)
    FROM generate_series(1, :warehouses) w, generate_series(1, 10) d;
INSERT INTO customer SELECT w, d, c, 'NAME' || c % 1000, -10, 10, repeat('c', 350)
    FROM generate_series(1, :warehouses) w, generate_series(1, 10) d, generate_series(1, 3000) c;
INSERT INTO item SELECT i, 1 + i % 100, 'item ' || i, repeat('i', 40) FROM generate_series(1, 100000) i;
INSERT INTO stock SELECT w, i, 50, 0, 0, repeat('s', 240)
    FROM generate_series(1, :warehouses) w, generate_series(1, 100000) i;
INSERT INTO orders SELECT w, d, o, 1 + (o * 7919) % 3000, CASE WHEN o < 2101 THEN 1 + o % 10 END, 10, now()
    FROM generate_series(1, :warehouses) w, generate_series(1, 10) d, generate_series(1, 3000) o;
INSERT INTO new_order SELECT w, d, o
    FROM generate_series(1, :warehouses) w, generate_series(1, 10) d, generate_series(2101, 3000) o;
INSERT INTO order_line SELECT w, d, o, l, 1 + (o * 31 + l * 9973) % 100000,
        CASE WHEN o < 2101 THEN now() END, 5, 9.99, repeat('o', 24)
    FROM generate_series(1, :warehouses) w, generate_series(1, 10) d, generate_series(1, 3000) o,
        generate_series(1, 10) l;
CREATE INDEX ON customer (c_w_id, c_d_id, c_last);
CREATE INDEX ON orders (o_w_id, o_d_id, o_c_id, o_id);
VACUUM ANALYZE;
